#include "output/report_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "output/report_cpu.h"
#include "output/report_events.h"
#include "output/report_waits.h"
#include "output/runtime_event_tables.h"
#include "output/share.h"
#include "output/summary.h"
#include "output/wait_parts.h"
#include "profile/library_methods.h"
#include "profile/model_diff.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Rows of wall time that ran: their stacks have no mark of a wait. Each such row has a 1.
std::vector<uint8_t> RunningRows(const ProfileModel& model) {
  std::vector<uint8_t> waits(model.nodes.size());
  for (NodeIndex node = 1; node < model.nodes.size(); ++node) {
    const ModelFrame& frame = model.frame_of(node);
    waits[node] = waits[model.nodes[node].parent];
    if (frame.kind == ModelFrameKind::kMark && IsWaitMark(model.text(frame.name))) waits[node] = 1;
  }
  std::vector<uint8_t> running(model.samples.size());
  for (size_t row = 0; row < running.size(); ++row) running[row] = waits[model.samples.stack[row]] == 0 ? 1 : 0;
  return running;
}

void Append(std::vector<ReportTable> more, std::vector<ReportTable>& tables) {
  tables.insert(tables.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// The tables of views that blame methods with times: pauses, delays, compilations, waits for locks.
std::vector<ReportTable> BlamedTables(const ProfileModel& model) {
  const std::string view(ProfileViewText(model.meta.view));
  ReportTable self = SelfTable(model);
  self.id = absl::StrCat(view, "_self");
  self.title = absl::StrCat("Methods by their part of the view ", view);
  return {OwnTable(model, {}, absl::StrCat(view, "_own_methods"),
                   absl::StrCat("Methods of the program by their part of the view ", view)),
          std::move(self)};
}

// These views blame methods for the same events.
bool TellsRuntimeEvents(ProfileView view) {
  return view == ProfileView::kPause || view == ProfileView::kSuspendDelay || view == ProfileView::kJit;
}

// The tables of the runtime's events that one of the profiles keeps. If none has any, that is said once.
std::vector<ReportTable> EventTables(std::span<const ProfileModel* const> models) {
  const auto has_events = [](const ProfileModel* model) { return !model->events.empty(); };
  const auto found = std::find_if(models.begin(), models.end(), has_events);
  if (found != models.end()) return RuntimeEventTables(**found);
  const auto tells = [](const ProfileModel* model) { return TellsRuntimeEvents(model->meta.view); };
  if (models.empty() || std::any_of(models.begin(), models.end(), tells)) return {};
  return {NoRuntimeEventsTable()};
}

// By its own time a method says more than by that of its callees, which all its callers share with it.
constexpr double kSelfTells = 2;

struct Change {
  ReportRow row;
  double size = 0;   // how much it tells, without a limit
  bool own = false;  // a method of the program
};

// The largest change comes first. In a chain of callers that changed alike, methods of the program come first.
void SortChanges(std::vector<Change>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.size != b.size ? a.size > b.size : a.own && !b.own;
  });
}

// Shares are what two recordings of different lengths have in common.
Change ChangeOf(const MethodChange& method, const ProfileDiff& diff) {
  const auto after = static_cast<double>(std::max<uint64_t>(diff.total_after, 1));
  // The weight that changed more clearly is taken.
  const bool by_total = !method.self.significant && method.total.significant;
  const WeightChange& weight = by_total ? method.total : method.self;
  const double change = weight.change / after;
  ReportCell cell{absl::StrFormat("%+.1f %%", 100 * change), change, std::nullopt, false};
  if (weight.errors > 0) {
    cell.error = std::abs(change) / weight.errors;
    absl::StrAppendFormat(&cell.text, " ± %.1f", 100 * *cell.error);
  }
  const double size = std::abs(change) * (by_total ? 1 : kSelfTells);
  return {{{std::move(cell), WordCell(by_total ? "with callees" : "self"),
            ShareCell(ShareOf(weight.before, diff.total_before, {})),
            ShareCell(ShareOf(weight.after, diff.total_after, {})), NameCell(method.name)},
           std::min(1.0, size)},
          size,
          !IsOfLibraries(method.name)};
}

}  // namespace

absl::StatusOr<std::vector<ReportTable>> TablesOf(const ProfileModel& model) {
  switch (model.meta.view) {
    case ProfileView::kCpu:
      return CpuTables(model);
    case ProfileView::kOffCpu:
      return WaitTables(model);
    case ProfileView::kWall: {
      absl::StatusOr<std::vector<ReportTable>> tables = WaitTables(model);
      if (tables.ok()) Append(CpuTables(model, RunningRows(model)), *tables);
      return tables;
    }
    case ProfileView::kAllocations:
      return AllocationTables(model);
    case ProfileView::kExceptions:
      return ExceptionTables(model);
    case ProfileView::kJit:
    case ProfileView::kPause:
    case ProfileView::kSuspendDelay:
    case ProfileView::kContention:
      break;
  }
  return BlamedTables(model);
}

absl::StatusOr<ReportTable> ChangesTable(const ProfileModel& before, const ProfileModel& after) {
  ASSIGN_OR_RETURN(const ProfileDiff diff, DiffProfiles(before, after, DiffBasis::kShare));
  ReportTable table{
      .id = "changes",
      .title = absl::StrCat("Changes, view ", ProfileViewText(after.meta.view)),
      .columns = {{"change", "change"}, {"of", "of"}, {"before", "before"}, {"after", "after"}, {"method", "method"}},
      .weight = 2};
  std::vector<Change> changes;
  size_t moved = 0;
  for (const uint32_t index : diff.ranked) {
    const MethodChange& method = diff.methods[index];
    if (method.self.moved || method.total.moved) ++moved;
    if (diff.tested && !method.self.significant && !method.total.significant) continue;
    changes.push_back(ChangeOf(method, diff));
  }
  SortChanges(changes);
  const size_t significant = changes.size();
  for (Change& change : changes) AddRow(table, std::move(change.row));
  if (!diff.tested) {
    table.says.push_back("Changes and noise can't be told apart: the weights are no counts of samples.");
  } else {
    table.says.push_back(absl::StrCat(significant == 0 ? "No" : absl::StrCat(significant),
                                      significant == 1 ? " method" : " methods", " changed by more than noise, at a ",
                                      "false discovery rate of 1 %."));
  }
  if (diff.scatter_unknown) {
    table.says.push_back(
        "The scatter of the program is not known: too few samples, or some without a time. Changes may be noise.");
  }
  if (moved > 0) {
    table.says.push_back(
        absl::StrCat(moved, " others changed places with their callers or callees: inlined, or replaced."));
  }
  return table;
}

absl::StatusOr<Report> BuildReport(std::span<const ReportSource> sources, const RuntimeTables* runtime) {
  Report report;
  std::array<std::vector<const ReportSource*>, kProfileViewCount> by_view;
  std::vector<std::string> names;
  for (const ReportSource& source : sources) {
    by_view[static_cast<size_t>(source.model->meta.view)].push_back(&source);
    if (std::find(names.begin(), names.end(), source.name) == names.end()) names.push_back(source.name);
  }
  report.title = absl::StrCat("clrsampler report: ", PrintableText(absl::StrJoin(names, ", ")));
  report.tables.push_back(CoverageTable(sources));
  double seconds = 0;
  std::vector<const ProfileModel*> reported;
  const bool has_cpu = !by_view[static_cast<size_t>(ProfileView::kCpu)].empty();
  for (const std::vector<const ReportSource*>& ones : by_view) {
    if (ones.empty()) continue;
    const ProfileModel& last = *ones.back()->model;
    if (ones.size() > 2) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat(ones.size(), " profiles of the view ",
                                                              ProfileViewText(last.meta.view), " were given")),
                      "give one, or two to compare; clrsampler merge adds profiles up");
    }
    if (ones.size() == 2) {
      ASSIGN_OR_RETURN(ReportTable changes, ChangesTable(*ones.front()->model, last));
      report.tables.push_back(std::move(changes));
    }
    absl::StatusOr<std::vector<ReportTable>> tables =
        has_cpu && HasWaits(last.meta.view) ? WaitTables(last) : TablesOf(last);
    if (!tables.ok()) return Annotate(tables.status(), ones.back()->name);
    Append(*std::move(tables), report.tables);
    reported.push_back(&last);
    if (last.meta.view == ProfileView::kCpu) seconds = static_cast<double>(last.meta.recorded_ns()) / 1e9;
  }
  if (runtime == nullptr) {
    Append(EventTables(reported), report.tables);
  } else {
    Append(runtime->Pauses(seconds), report.tables);
    Append(runtime->Compilations(seconds), report.tables);
  }
  return report;
}

}  // namespace clrsampler
