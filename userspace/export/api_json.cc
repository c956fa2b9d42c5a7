#include "export/api_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace clrsampler {
namespace {

using Json = nlohmann::ordered_json;

double Ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json TimeOrNull(uint64_t unix_ns) { return unix_ns == 0 ? Json() : Json(Ms(unix_ns)); }

Json MsArray(const std::vector<uint64_t>& values) {
  Json array = Json::array();
  for (const uint64_t ns : values) array.push_back(Ms(ns));
  return array;
}

uint64_t Sum(const std::vector<uint64_t>& values) {
  uint64_t sum = 0;
  for (const uint64_t value : values) sum += value;
  return sum;
}

// The times that threads ran and waited, for each state that any step has.
Json StatesJson(const std::vector<WaitTimes>& steps) {
  std::vector<std::pair<std::string, std::vector<uint64_t>>> states;
  for (size_t step = 0; step < steps.size(); ++step) {
    size_t state = 0;
    VisitWaitStates(steps[step], [&](absl::string_view text, uint64_t ns) {
      if (step == 0) states.emplace_back(std::string(text), std::vector<uint64_t>(steps.size()));
      states[state++].second[step] = ns;
    });
  }
  Json json = Json::array();
  for (const auto& [text, ns] : states) {
    if (Sum(ns) != 0) json.push_back({{"state", text}, {"ms", MsArray(ns)}});
  }
  return json;
}

Json FramesJson(const FrameCounts& counts) { return {{"named", counts.named}, {"unnamed", counts.unnamed}}; }

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

// The mean of rates in times of these lengths.
double Mean(const std::vector<double>& values, const std::vector<uint64_t>& covered_ns) {
  double sum = 0;
  double whole_ns = 0;
  for (size_t i = 0; i < values.size() && i < covered_ns.size(); ++i) {
    sum += values[i] * static_cast<double>(covered_ns[i]);
    whole_ns += static_cast<double>(covered_ns[i]);
  }
  return whole_ns == 0 ? 0 : sum / whole_ns;
}

}  // namespace

std::string StatusJson(const ApiStatus& status) {
  Json json = {{"version", status.version},
               {"host", status.host},
               {"cpus", status.cpus},
               {"frequency_hz", status.frequency_hz},
               {"started", Ms(status.started_unix_ns)},
               {"now", Ms(status.now_unix_ns)},
               {"oldest", TimeOrNull(status.span.oldest_unix_ns)},
               {"newest", TimeOrNull(status.span.newest_unix_ns)},
               {"window_ms", Ms(status.window_ns)}};
  json["store"] = !status.store_max_bytes ? Json()
                                          : Json{{"bytes", status.span.bytes},
                                                 {"max_bytes", *status.store_max_bytes},
                                                 {"dictionary_bytes", status.span.dictionary_bytes},
                                                 {"windows", status.span.windows},
                                                 {"minutes", status.span.minutes},
                                                 {"hours", status.span.hours}};
  json["notices"] = Json::array();
  if (status.newest != nullptr) {
    for (const Notice& notice : status.newest->account.notices) {
      json["notices"].push_back({{"text", notice.message}, {"hint", notice.hint}});
    }
  }
  return Dump(json);
}

std::string TimelineJson(const Timeline& timeline, HistoryPauses pauses) {
  std::vector<bool> covered;
  for (const uint64_t ns : timeline.covered_ns) covered.push_back(ns > 0);
  Json json = {{"begin", Ms(timeline.begin_unix_ns)},
               {"step_ms", Ms(timeline.step_ns)},
               {"steps", timeline.steps},
               {"covered", std::move(covered)},
               {"covered_ms", MsArray(timeline.covered_ns)},
               {"series", Json::array()},
               {"pauses", Json::array()}};
  for (const TimelineSeries& series : timeline.series) {
    json["series"].push_back({{"label", series.label},
                              {"pid", series.pid == 0 ? Json() : Json(series.pid)},
                              {"container", series.container},
                              {"dotnet", series.dotnet},
                              {"cores", series.cores},
                              {"pause_ms", MsArray(series.pause_ns)},
                              {"suspend_ms", MsArray(series.suspend_ns)},
                              {"jit_ms", MsArray(series.compile_ns)},
                              {"alloc_bytes", series.allocated_bytes},
                              {"wait_ms", MsArray(series.wait_ns)}});
  }
  json["states"] = StatesJson(timeline.states);
  std::sort(pauses.longest.begin(), pauses.longest.end(), [](const HistoryPause& a, const HistoryPause& b) {
    return a.pause.requested_unix_ns < b.pause.requested_unix_ns;
  });
  for (const HistoryPause& one : pauses.longest) {
    json["pauses"].push_back({{"t", Ms(one.pause.requested_unix_ns)},
                              {"pause_ms", Ms(one.pause.pause_ns)},
                              {"suspend_ms", Ms(one.pause.suspend_ns)},
                              {"pid", one.pid},
                              {"comm", one.comm},
                              {"kind", one.pause.kind},
                              {"generation", OrNull(one.pause.generation)},
                              {"reason", one.pause.reason}});
  }
  return Dump(json);
}

std::string LanesJson(const HistoryLanes& lanes) {
  Json json = {{"begin", Ms(lanes.begin_unix_ns)}, {"step_ms", Ms(lanes.step_ns)}, {"steps", lanes.steps},
               {"covered", lanes.covered},         {"states", Json::array()},      {"others", lanes.others},
               {"threads", Json::array()},         {"lanes", Json::array()}};
  for (int state = 0; state < kLaneCategoryCount; ++state) {
    json["states"].push_back(std::string(LaneCategoryText(static_cast<LaneCategory>(state))));
  }
  for (const HistoryLanes::Thread& thread : lanes.threads) {
    json["threads"].push_back({{"pid", thread.pid == 0 ? Json() : Json(thread.pid)},
                               {"comm", thread.comm},
                               {"container", thread.container},
                               {"tid", thread.tid},
                               {"name", thread.name},
                               {"ms", Ms(thread.total_ns)}});
  }
  for (const HistoryLanes::Lane& lane : lanes.lanes) {
    std::vector<uint32_t> steps;
    std::vector<uint64_t> us;
    for (const auto& [step, ns] : lane.values) {
      steps.push_back(step);
      us.push_back((ns + 500) / 1000);
    }
    json["lanes"].push_back(
        {{"thread", lane.thread}, {"state", static_cast<int>(lane.state)}, {"step", steps}, {"us", us}});
  }
  return Dump(json);
}

std::string PausesJson(const HistoryPauses& pauses) {
  Json json = {{"count", pauses.count},
               {"pause_ms", Ms(pauses.pause_ns)},
               {"suspend_ms", Ms(pauses.suspend_ns)},
               {"by_kind", Json::object()},
               {"pauses", Json::array()}};
  for (const auto& [kind, count] : pauses.count_by_kind) json["by_kind"][kind] = count;
  for (const HistoryPause& one : pauses.longest) {
    const WindowPause& pause = one.pause;
    Json culprits = Json::array();
    for (const Culprit& culprit : pause.culprits) {
      culprits.push_back({{"method", culprit.method}, {"tid", culprit.tid}, {"delay_ms", Ms(culprit.delay_ns)}});
    }
    json["pauses"].push_back({{"t", Ms(pause.requested_unix_ns)},
                              {"pid", one.pid},
                              {"comm", one.comm},
                              {"container", one.container},
                              {"kind", pause.kind},
                              {"reason", pause.reason},
                              {"gc_reason", pause.gc_reason},
                              {"generation", OrNull(pause.generation)},
                              {"gc_index", OrNull(pause.gc_index)},
                              {"induced", pause.induced},
                              {"pause_ms", Ms(pause.pause_ns)},
                              {"suspend_ms", Ms(pause.suspend_ns)},
                              {"tid", pause.tid},
                              {"thread", pause.thread_name},
                              {"culprits", std::move(culprits)}});
  }
  return Dump(json);
}

std::string MethodsJson(const HistoryMethods& methods) {
  Json json = {{"count", methods.count}, {"total_ms", Ms(methods.total_ns)}, {"methods", Json::array()}};
  for (const HistoryMethod& one : methods.methods) {
    json["methods"].push_back({{"method", one.method.method},
                               {"tier", one.method.tier},
                               {"pid", one.pid},
                               {"comm", one.comm},
                               {"container", one.container},
                               {"count", one.method.count},
                               {"total_ms", Ms(one.method.total_ns)},
                               {"longest_ms", Ms(one.method.longest_ns)},
                               {"bytes", one.method.bytes}});
  }
  return Dump(json);
}

std::string HealthJson(const HistoryHealth& health) {
  Json json = {
      {"covered_ms", Ms(health.covered_ns)},
      {"samples",
       {{"expected", health.samples_expected}, {"taken", health.samples_taken}, {"written", health.samples_written}}},
      {"lost", Json::object()},
      {"frames",
       {{"managed", FramesJson(health.managed)},
        {"native", FramesJson(health.native)},
        {"kernel", FramesJson(health.kernel)}}},
      {"stacks",
       {{"complete", health.stacks_complete},
        {"truncated", health.stacks_truncated},
        {"broken", health.stacks_broken}}},
      {"own",
       {{"cpu_seconds", health.self_cpu_seconds},
        {"peak_rss_bytes", health.peak_rss_bytes},
        {"bpf_map_bytes", health.bpf_map_bytes}}},
      {"rates", Json::array()},
      {"notice_counts", Json::object()},
      {"notices", health.notices}};
  for (const auto& [reason, count] : health.lost) json["lost"][reason] = count;
  for (const auto& [kind, count] : health.notice_counts) json["notice_counts"][kind] = count;
  for (const HistoryHealth::Rate& rate : health.rates) {
    json["rates"].push_back({{"t", Ms(rate.time_unix_ns)}, {"hz", rate.hz}});
  }
  return Dump(json);
}

std::string ProcessesJson(const Timeline& timeline, const KnownProcesses& known) {
  Json json = {{"processes", Json::array()}};
  for (const TimelineSeries& series : timeline.series) {
    if (series.pid == 0) continue;  // others
    const auto found = known.find({series.pid, series.label});
    const KnownProcess process = found == known.end() ? KnownProcess() : found->second;
    Json labels = Json::object();
    process.labels.ForEach(
        [&](absl::string_view name, const std::string& value) { labels[std::string(name)] = value; });
    json["processes"].push_back({{"pid", series.pid},
                                 {"comm", series.label},
                                 {"container", series.container},
                                 {"runtime", OrNull(process.runtime)},
                                 {"labels", std::move(labels)},
                                 {"cores", Mean(series.cores, timeline.covered_ns)},
                                 {"pause_ms", Ms(Sum(series.pause_ns))},
                                 {"jit_ms", Ms(Sum(series.compile_ns))},
                                 {"alloc_bytes", Sum(series.allocated_bytes)},
                                 {"wait_ms", Ms(Sum(series.wait_ns))}});
  }
  return Dump(json);
}

std::string RecordingsJson(const std::vector<FlightRecording>& recordings) {
  Json json = {{"recordings", Json::array()}};
  for (const FlightRecording& one : recordings) {
    json["recordings"].push_back({{"id", one.id},
                                  {"trigger", one.trigger},
                                  {"t", Ms(one.time_unix_ns)},
                                  {"from", Ms(one.from_unix_ns)},
                                  {"to", Ms(one.to_unix_ns)},
                                  {"pid", OrNull(one.pid)},
                                  {"comm", one.comm},
                                  {"value", one.value},
                                  {"bytes", one.bytes},
                                  {"files", one.files}});
  }
  return Dump(json);
}

}  // namespace clrsampler
