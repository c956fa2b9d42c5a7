#include "cli/exceptions_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/lines_option.h"
#include "formats/profile/profile_model.h"
#include "output/allocation_summary.h"
#include "output/event_summary.h"
#include "output/exception_summary.h"
#include "output/seen_share.h"
#include "pipeline/recorder.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson TypeRows(const AllocationSummary& summary, std::map<std::string, uint64_t> rethrown) {
  OrderedJson rows = OrderedJson::array();
  for (const AllocatedBytes& row : summary.types) {
    rows.push_back({{"name", row.name}, {"count", row.bytes}, {"rethrown", CountOf(rethrown, row.name)}});
    rethrown.erase(row.name);
  }
  // These were thrown before the program was watched.
  for (const auto& [name, count] : rethrown) rows.push_back({{"name", name}, {"count", 0}, {"rethrown", count}});
  return rows;
}

OrderedJson FrameRows(const FrameTable& frames, const std::vector<FrameId>& stack) {
  OrderedJson rows = OrderedJson::array();
  for (const FrameId id : stack) {
    const Frame& frame = frames.at(id);
    OrderedJson row = {{"name", frame.text}};
    if (frame.place.line != 0) {
      row["file"] = frame.place.file;
      row["line"] = frame.place.line;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string JsonText(const Recorder& recorder, const std::vector<ThrowingStack>& stacks) {
  const Account& account = recorder.account();
  const AllocationSummary summary = SummarizeAllocations(recorder.frames(), recorder.stacks());
  uint64_t rethrown = 0;
  for (const auto& [type, count] : account.rethrown) rethrown += count;
  OrderedJson methods = OrderedJson::array(), stack_rows = OrderedJson::array();
  for (const AllocatedBytes& row : summary.methods) methods.push_back({{"name", row.name}, {"count", row.bytes}});
  for (const ThrowingStack& stack : stacks) {
    stack_rows.push_back(
        {{"type", stack.type}, {"count", stack.count}, {"frames", FrameRows(recorder.frames(), stack.frames)}});
  }
  const OrderedJson json = {{"seconds", account.duration_seconds},
                            {"exceptions", summary.bytes},
                            {"exceptions_seen", CountOf(account.exceptions, "thrown")},
                            {"rethrown", rethrown},
                            {"types", TypeRows(summary, account.rethrown)},
                            {"methods", methods},
                            {"stacks", stack_rows}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string Text(const Recorder& recorder, const std::vector<ThrowingStack>& stacks, size_t rows) {
  std::string text =
      EventSummaryText(ProfileView::kExceptions, recorder.frames(), recorder.stacks(), recorder.account(), rows);
  if (!stacks.empty()) {
    absl::StrAppend(&text, "exceptions  thrown at\n", ThrowingStacksText(recorder.frames(), stacks));
  }
  return text;
}

}  // namespace

void DeclareExceptionsOptions(CLI::App& app, ExceptionsConfig& config) {
  DeclareWatchOptions(app, config.watch, "the tables as one object; docs/exceptions.md has the fields");
  DeclareLines(app, config.watch.lines);
  DeclareHookBudget(app, config.hook_budget);
  app.add_option("--rows", config.rows, "so many types, methods and stacks at most")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--frames", config.frames, "so many frames of each stack, the innermost ones")
      ->capture_default_str()
      ->type_name("N");
}

absl::Status RunExceptions(const ExceptionsConfig& config) {
  ASSIGN_OR_RETURN(RecordOptions options, WatchOptions(config.watch));
  options.view = RecordView::kExceptions;
  options.probe_cost_share = config.hook_budget / 100;
  LineOutput output(STDOUT_FILENO);
  return RunWatch(config.watch,
                  {.options = std::move(options),
                   .can_watch = [&](Recorder& recorder) { return recorder.WatchesExceptionsOf(config.watch.pid); },
                   .summary =
                       [&](const Recorder& recorder) {
                         const std::vector<ThrowingStack> stacks =
                             ThrowingStacks(recorder.frames(), recorder.stacks(), config.rows, config.frames);
                         return config.watch.json ? JsonText(recorder, stacks) : Text(recorder, stacks, config.rows);
                       },
                   .summary_with_json = true,
                   .needs_samples = false},
                  output);
}

}  // namespace clrsampler
