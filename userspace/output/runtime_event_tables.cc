#include "output/runtime_event_tables.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "profile/pause_detail.h"

namespace clrsampler {
namespace {

uint64_t EndOf(const ModelEvent& event) { return event.time_ns + std::min(event.duration_ns, kNoTime - event.time_ns); }

// Compilations nest on one thread. This is each event's time without the events that it contains.
std::vector<uint64_t> OwnTimes(const std::vector<ModelEvent>& events) {
  std::vector<uint64_t> own(events.size());
  absl::flat_hash_map<ThreadIndex, std::vector<size_t>> open_by_thread;  // innermost last
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind != ModelEventKind::kCompilation) continue;
    own[i] = events[i].duration_ns;
    std::vector<size_t>& open = open_by_thread[events[i].thread];
    while (!open.empty() && EndOf(events[open.back()]) <= events[i].time_ns) open.pop_back();
    if (!open.empty()) own[open.back()] -= std::min(own[open.back()], events[i].duration_ns);
    open.push_back(i);
  }
  return own;
}

}  // namespace

RuntimeTables RuntimeTablesOf(const ProfileModel& model) {
  RuntimeTables tables;
  const std::vector<uint64_t> own = OwnTimes(model.events);
  for (size_t i = 0; i < model.events.size(); ++i) {
    const ModelEvent& event = model.events[i];
    const std::string name(model.text(event.name));
    if (event.kind == ModelEventKind::kPause) {
      tables.AddPause(name, event.duration_ns);
      for (const PauseDelay& delay : PauseDelaysOf(model.text(event.detail))) {
        tables.AddDelay(delay.method, delay.delay_ns);
      }
    } else if (event.kind == ModelEventKind::kCompilation) {
      tables.AddCompilation(name, std::string(model.text(event.detail)), own[i]);
    }
  }
  return tables;
}

ReportTable NoRuntimeEventsTable() {
  ReportTable table{.id = "pauses", .title = "Pauses of the runtime", .weight = 0.05};
  table.says.push_back(
      "The profile has neither pauses nor compilations. `clrsampler record --pid PID -o cpu.json` keeps them in a "
      ".json "
      "file, and `clrsampler report --pid PID` reports them at once.");
  return table;
}

std::vector<ReportTable> RuntimeEventTables(const ProfileModel& model) {
  if (model.events.empty()) return {NoRuntimeEventsTable()};
  const RuntimeTables runtime = RuntimeTablesOf(model);
  const double seconds = static_cast<double>(model.meta.recorded_ns()) / 1e9;
  std::vector<ReportTable> tables = runtime.Pauses(seconds);
  const auto background = std::count_if(model.events.begin(), model.events.end(), [](const ModelEvent& event) {
    return event.kind == ModelEventKind::kCollection;
  });
  if (background > 0) {
    tables.front().says.push_back(
        absl::StrCat(background, background == 1 ? " collection" : " collections", " in the background ended."));
  }
  std::vector<ReportTable> compilations = runtime.Compilations(seconds);
  std::move(compilations.begin(), compilations.end(), std::back_inserter(tables));
  return tables;
}

}  // namespace clrsampler
