// Where the profiles of a report come from: files, or a recording.
#ifndef CLRSAMPLER_CLI_REPORT_SOURCES_H_
#define CLRSAMPLER_CLI_REPORT_SOURCES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/profile_options.h"
#include "cli/report_recording.h"
#include "formats/profile/profile_model.h"
#include "output/report.h"
#include "output/report_coverage.h"

namespace clrsampler {

struct ReportInputs {
  std::vector<std::string> names;  // of the models: files, or the process
  ReportRecording recording;       // of files only the models are there
};

inline const std::vector<ReportPart> kAllReportParts = {ReportPart::kCpu, ReportPart::kWaits, ReportPart::kAllocations,
                                                        ReportPart::kExceptions};

absl::StatusOr<ReportInputs> ReadReportInputs(const std::vector<std::string>& files,
                                              ProfileSource source = ProfileSource::kAny);
absl::StatusOr<ReportInputs> RecordReportInputs(const ReportRecordingOptions& options);

// The sources point into the inputs.
std::vector<ReportSource> SourcesOf(const ReportInputs& inputs);

// All that they say. A part that could not be recorded stands among the sentences of the coverage.
absl::StatusOr<Report> WholeReport(const ReportInputs& inputs);
// The coverage, without more.
Report CoverageReport(const ReportInputs& inputs, const std::string& title);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_REPORT_SOURCES_H_
