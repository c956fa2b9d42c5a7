#include "cli/report_sources.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "output/report_builder.h"
#include "output/summary.h"
#include "status/status.h"

namespace clrsampler {
namespace {

void SayMissing(const ReportInputs& inputs, Report& report) {
  std::vector<std::string>& says = report.tables.front().says;
  for (const std::string& sentence : inputs.recording.missing) says.push_back(PrintableText(sentence));
}

}  // namespace

absl::StatusOr<ReportInputs> ReadReportInputs(const std::vector<std::string>& files, ProfileSource source) {
  ReportInputs inputs;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(ProfileModel model, ReadProfileFile(file, source));
    inputs.recording.models.push_back(std::move(model));
    inputs.names.push_back(file == "-" ? "standard input" : file.substr(file.rfind('/') + 1));
  }
  return inputs;
}

absl::StatusOr<ReportInputs> RecordReportInputs(const ReportRecordingOptions& options) {
  ASSIGN_OR_RETURN(ReportRecording recording, RecordForReport(options));
  ReportInputs inputs;
  inputs.recording = std::move(recording);
  inputs.names.assign(inputs.recording.models.size(), absl::StrCat("process ", options.pid));
  return inputs;
}

std::vector<ReportSource> SourcesOf(const ReportInputs& inputs) {
  std::vector<ReportSource> sources;
  for (size_t i = 0; i < inputs.recording.models.size(); ++i) {
    sources.push_back({inputs.names[i], &inputs.recording.models[i]});
  }
  return sources;
}

absl::StatusOr<Report> WholeReport(const ReportInputs& inputs) {
  absl::StatusOr<Report> report =
      BuildReport(SourcesOf(inputs), inputs.recording.has_runtime ? &inputs.recording.runtime : nullptr);
  if (report.ok()) SayMissing(inputs, *report);
  return report;
}

Report CoverageReport(const ReportInputs& inputs, const std::string& title) {
  Report report;
  report.title = title;
  report.tables.push_back(CoverageTable(SourcesOf(inputs)));
  SayMissing(inputs, report);
  return report;
}

}  // namespace clrsampler
