// Records all that a report is made of: several recordings of one process side by side, each in a process of its own.
#ifndef CLRSAMPLER_CLI_REPORT_RECORDING_H_
#define CLRSAMPLER_CLI_REPORT_RECORDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "output/runtime_tables.h"

namespace clrsampler {

enum class ReportPart : uint8_t {
  kCpu,  // with pauses and compilations
  kWaits,
  kAllocations,
  kExceptions,
  kCode,  // CPU time with the machine code of methods and the texts of source files
};

struct ReportRecordingOptions {
  uint32_t pid = 0;
  uint64_t duration_ns = 0;
  bool lines = false;
  std::vector<ReportPart> parts;
};

struct ReportRecording {
  std::vector<ProfileModel> models;
  RuntimeTables runtime;             // empty without kCpu
  bool has_runtime = false;          // kCpu was recorded, and pauses and compilations were seen
  std::vector<std::string> missing;  // sentences: what could not be recorded, and why
};

// Waits for the end of the recordings; SIGINT ends these, and what they have is given. They end with the calling
// process. It must have one thread, and keeps its rights. An error, with a hint: nothing could be recorded.
absl::StatusOr<ReportRecording> RecordForReport(const ReportRecordingOptions& options);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_REPORT_RECORDING_H_
