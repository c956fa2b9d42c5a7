// The files of the flight recorder, as the server shows them.
#ifndef CLRSAMPLER_EXPORT_FLIGHT_RECORDINGS_H_
#define CLRSAMPLER_EXPORT_FLIGHT_RECORDINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

struct FlightRecording {
  std::string id;       // a word that is not used again
  std::string trigger;  // "pause>100ms"
  uint64_t time_unix_ns = 0;
  uint64_t from_unix_ns = 0, to_unix_ns = 0;  // what is kept
  std::optional<uint32_t> pid;                // whose doing it was
  std::string comm;
  std::string value;  // what was seen: "pause of 213 ms"
  uint64_t bytes = 0;
  std::vector<std::string> files;  // their names, without a path
};

// Any thread.
class FlightRecordings {
 public:
  virtual ~FlightRecordings() = default;
  virtual std::vector<FlightRecording> List() = 0;  // newest first
  // `id` is that of an entry of List. NotFound: it is gone meanwhile.
  virtual absl::StatusOr<ProfileModel> Open(const std::string& id) = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_FLIGHT_RECORDINGS_H_
