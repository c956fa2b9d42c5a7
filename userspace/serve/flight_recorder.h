// Flight recordings: when a trigger hits, the minute around it is written to a file at full detail, each sample with
// its time, thread and state, and with it what the runtimes did. The time before is known because the last windows are
// always kept in memory. The recording of a long pause lasts until after its end, and begins with the oldest window
// that is kept.
//
//   DIR/20261122T101530Z-1.json        the samples, a profile like any other (docs/profile-json.md)
//   DIR/20261122T101530Z-1.info.json   the trigger, what it saw, pauses with culprits, the costliest compilations, what
//                                      was allocated where, and who waited where
//
// Limited: one recording of a trigger in `interval_ns`, and of all recordings as many as `max_files` and `max_bytes`
// allow, the oldest go first. Recordings that were not made for that are counted. A rate that stays above for longer is
// counted once, and recorded when the interval is over.
#ifndef CLRSAMPLER_SERVE_FLIGHT_RECORDER_H_
#define CLRSAMPLER_SERVE_FLIGHT_RECORDER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "export/flight_recordings.h"
#include "formats/profile/profile_model.h"
#include "profile/window.h"
#include "serve/trigger.h"

namespace clrsampler {

struct FlightRecorderOptions {
  std::string directory;  // made if it is not there, for root's eyes only; empty: nothing is recorded
  std::vector<Trigger> triggers;
  uint64_t before_ns = 30'000'000'000;
  uint64_t after_ns = 30'000'000'000;
  uint64_t interval_ns = 300'000'000'000;
  size_t max_files = 100;  // recordings
  uint64_t max_bytes = uint64_t{1} << 30;
};

struct FlightCounters {
  std::map<std::string, uint64_t> hits;      // by trigger; a rate that stays above is one
  std::map<std::string, uint64_t> recorded;  // likewise
  std::map<std::string, uint64_t> limited;   // hits within interval_ns of a recording
  std::map<std::string, uint64_t> failed;    // recordings that could not be written, or have no window
};

// Observe and Finish on one thread; the others on any.
class FlightRecorder : public FlightRecordings {
 public:
  // Finds the recordings that are there. An error: the directory cannot be used.
  static absl::StatusOr<std::unique_ptr<FlightRecorder>> OpenFolder(FlightRecorderOptions options);

  // Windows in their order. An error: a recording could not be written; the next one may.
  absl::Status Observe(std::shared_ptr<const Window> window);
  // No window comes any more: what waits for its end is written as it is.
  absl::Status Finish();

  std::vector<FlightRecording> List() override;
  absl::StatusOr<ProfileModel> Open(const std::string& id) override;
  FlightCounters counters() const;

 private:
  explicit FlightRecorder(FlightRecorderOptions options);
  void Take(const TriggerHit& hit, TriggerWatch& watch);
  absl::Status FindFiles();
  void RemoveLeftovers();
  struct Content;
  Content Gather(FlightRecording& recording) const;
  static absl::StatusOr<ProfileModel> ModelOf(const FlightRecording& recording, const Content& content);
  absl::Status WriteFiles(FlightRecording& recording);
  absl::Status Write(FlightRecording recording);
  void MakeRoom();
  std::string PathOf(absl::string_view id, absl::string_view extension) const;

  const FlightRecorderOptions options_;
  std::vector<TriggerWatch> watches_;
  std::map<std::string, uint64_t> last_recorded_;  // by trigger
  std::deque<std::shared_ptr<const Window>> windows_;
  std::vector<FlightRecording> waiting_;
  uint64_t next_number_ = 1;
  mutable std::mutex mutex_;
  std::vector<FlightRecording> recordings_;  // oldest first
  FlightCounters counters_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SERVE_FLIGHT_RECORDER_H_
