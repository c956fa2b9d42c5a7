// Answers of the API as JSON: docs/http-api.md has the fields. Pure. Texts that are no UTF-8 have U+FFFD where they are
// not.
#ifndef CLRSAMPLER_EXPORT_API_JSON_H_
#define CLRSAMPLER_EXPORT_API_JSON_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/flight_recordings.h"
#include "formats/labels/process_labels.h"
#include "profile/window.h"
#include "store/history.h"

namespace clrsampler {

struct ApiStatus {
  std::string version;
  std::string host;
  unsigned cpus = 0;
  uint64_t started_unix_ns = 0;
  uint64_t now_unix_ns = 0;
  uint64_t window_ns = 0;
  std::optional<uint64_t> store_max_bytes;  // nullopt: there is no store
  HistorySpan span;
  uint32_t frequency_hz = 0;
  const Window* newest = nullptr;  // borrowed; nullptr: none yet
};

std::string StatusJson(const ApiStatus& status);
// `pauses`: the longest of the range, in any order.
std::string TimelineJson(const Timeline& timeline, HistoryPauses pauses);
std::string LanesJson(const HistoryLanes& lanes);
std::string PausesJson(const HistoryPauses& pauses);
std::string MethodsJson(const HistoryMethods& methods);
std::string HealthJson(const HistoryHealth& health);
// The facts about a process that recent windows have, by pid and comm.
struct KnownProcess {
  std::string runtime;
  ProcessLabels labels;
};
using KnownProcesses = std::map<std::pair<uint32_t, std::string>, KnownProcess>;
std::string ProcessesJson(const Timeline& timeline, const KnownProcesses& known);
std::string RecordingsJson(const std::vector<FlightRecording>& recordings);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_API_JSON_H_
