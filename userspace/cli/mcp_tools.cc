#include "cli/mcp_tools.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/report_sources.h"
#include "output/report_builder.h"
#include "output/report_methods.h"
#include "output/report_text.h"
#include "output/report_waits.h"
#include "output/runtime_event_tables.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using Json = nlohmann::json;

constexpr size_t kDefaultBudget = 4000;
constexpr double kDefaultSeconds = 10;
// JSON writes the same content with more characters.
constexpr size_t kJsonBudgetFactor = 3;

absl::Status Unfit(const std::string& what, const std::string& hint) {
  return WithHint(absl::InvalidArgumentError(what), hint);
}

absl::StatusOr<ReportInputs> Recorded(const Json& arguments, std::vector<ReportPart> parts, bool lines,
                                      bool may_record) {
  if (!may_record) {
    return WithHint(absl::PermissionDeniedError("this server records no processes"),
                    "start it as `clrsampler mcp --record`, with the rights to record, or give a file");
  }
  const double seconds = arguments.value("seconds", kDefaultSeconds);
  return RecordReportInputs({.pid = arguments["pid"].get<uint32_t>(),
                             .duration_ns = static_cast<uint64_t>(seconds * 1e9),
                             .lines = lines,
                             .parts = std::move(parts)});
}

// A client may not know what the file is that it names. Standard input is the stream of this protocol, and the server
// must not wait for a pipe.
absl::StatusOr<ReportInputs> ReadFiles(const std::vector<std::string>& files) {
  return ReadReportInputs(files, ProfileSource::kRegularFile);
}

// The file or the process that a tool is called for.
absl::StatusOr<ReportInputs> InputsOf(const Json& arguments, ReportPart part, bool lines, bool may_record) {
  if (arguments.contains("file") == arguments.contains("pid")) {
    return Unfit("the tool takes either a file or a pid", "give `file`, the path of a profile, or `pid`");
  }
  if (arguments.contains("pid")) return Recorded(arguments, {part}, lines, may_record);
  return ReadFiles({arguments["file"].get<std::string>()});
}

void Append(std::vector<ReportTable> more, Report& report) {
  report.tables.insert(report.tables.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

absl::StatusOr<Report> WholeReportOf(const Json& arguments, bool may_record) {
  if (arguments.contains("files") == arguments.contains("pid")) {
    return Unfit("the tool takes either files or a pid", "give `files`, paths of profiles, or `pid`");
  }
  ASSIGN_OR_RETURN(const ReportInputs inputs, arguments.contains("pid")
                                                  ? Recorded(arguments, kAllReportParts, false, may_record)
                                                  : ReadFiles(arguments["files"].get<std::vector<std::string>>()));
  return WholeReport(inputs);
}

absl::StatusOr<Report> Top(const Json& arguments, bool may_record) {
  ASSIGN_OR_RETURN(const ReportInputs inputs, InputsOf(arguments, ReportPart::kCpu, false, may_record));
  ASSIGN_OR_RETURN(std::vector<ReportTable> tables, TablesOf(inputs.recording.models.front()));
  Report report = CoverageReport(inputs, absl::StrCat("Hottest methods: ", inputs.names.front()));
  Append(std::move(tables), report);
  return report;
}

absl::StatusOr<Report> OfMethod(const Json& arguments, bool lines, bool may_record) {
  ASSIGN_OR_RETURN(const ReportInputs inputs, InputsOf(arguments, ReportPart::kCpu, lines, may_record));
  const ProfileModel& model = inputs.recording.models.front();
  ASSIGN_OR_RETURN(const std::string method, MethodNamed(model, arguments["method"].get<std::string>()));
  ReportTable table = lines ? LinesTable(model, method) : CallersTable(model, method);
  Report report = CoverageReport(inputs, absl::StrCat(table.title, ": ", inputs.names.front()));
  report.tables.push_back(std::move(table));
  return report;
}

absl::StatusOr<Report> Changes(const Json& arguments) {
  const absl::StatusOr<ReportInputs> inputs =
      ReadFiles({arguments["before"].get<std::string>(), arguments["after"].get<std::string>()});
  RETURN_IF_ERROR(inputs.status());
  ASSIGN_OR_RETURN(ReportTable changes, ChangesTable(inputs->recording.models[0], inputs->recording.models[1]));
  Report report = CoverageReport(*inputs, absl::StrCat("Changes from ", inputs->names[0], " to ", inputs->names[1]));
  report.tables.push_back(std::move(changes));
  return report;
}

absl::StatusOr<Report> Pauses(const Json& arguments, bool may_record) {
  ASSIGN_OR_RETURN(const ReportInputs inputs, InputsOf(arguments, ReportPart::kCpu, false, may_record));
  const ProfileModel& model = inputs.recording.models.front();
  Report report = CoverageReport(inputs, absl::StrCat("Pauses: ", inputs.names.front()));
  if (inputs.recording.has_runtime) {
    const double seconds = static_cast<double>(model.meta.recorded_ns()) / 1e9;
    Append(inputs.recording.runtime.Pauses(seconds), report);
    Append(inputs.recording.runtime.Compilations(seconds), report);
    return report;
  }
  if (arguments.contains("pid")) return report;  // its coverage says what is in the way
  const bool blames = model.meta.view == ProfileView::kPause || model.meta.view == ProfileView::kSuspendDelay;
  if (!blames || !model.events.empty()) Append(RuntimeEventTables(model), report);
  if (!blames) return report;
  ASSIGN_OR_RETURN(std::vector<ReportTable> tables, TablesOf(model));
  Append(std::move(tables), report);
  return report;
}

absl::StatusOr<Report> Waits(const Json& arguments, bool may_record) {
  ASSIGN_OR_RETURN(const ReportInputs inputs, InputsOf(arguments, ReportPart::kWaits, false, may_record));
  const ProfileModel& model = inputs.recording.models.front();
  if (model.meta.view != ProfileView::kWall && model.meta.view != ProfileView::kOffCpu) {
    return Unfit(absl::StrCat("a profile of the view ", ProfileViewText(model.meta.view), " has no waits"),
                 "record one with --event wall --wakers, or give a pid");
  }
  ASSIGN_OR_RETURN(std::vector<ReportTable> tables, WaitTables(model));
  Report report = CoverageReport(inputs, absl::StrCat("Waits: ", inputs.names.front()));
  Append(std::move(tables), report);
  return report;
}

absl::StatusOr<Report> ReportOf(const std::string& tool, const Json& arguments, bool may_record) {
  if (tool == "report") return WholeReportOf(arguments, may_record);
  if (tool == "top") return Top(arguments, may_record);
  if (tool == "callers") return OfMethod(arguments, false, may_record);
  if (tool == "lines") return OfMethod(arguments, true, may_record);
  if (tool == "diff") return Changes(arguments);
  if (tool == "pauses") return Pauses(arguments, may_record);
  if (tool == "waits") return Waits(arguments, may_record);
  return absl::UnimplementedError(absl::StrCat("the tool ", tool, " does nothing"));
}

}  // namespace

absl::StatusOr<McpAnswer> CallMcpTool(const std::string& tool, const Json& arguments, bool may_record) {
  ASSIGN_OR_RETURN(Report report, ReportOf(tool, arguments, may_record));
  const size_t budget = arguments.value("budget", kDefaultBudget);
  McpAnswer answer;
  answer.structured = ReportJson(report, kJsonBudgetFactor * budget);
  answer.text = ReportMarkdown(std::move(report), budget);
  return answer;
}

}  // namespace clrsampler
