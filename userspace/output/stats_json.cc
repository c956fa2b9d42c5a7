#include "output/stats_json.h"

#include <nlohmann/json.hpp>

namespace clrsampler {
namespace {

nlohmann::ordered_json Counts(const FrameCounts& counts) {
  return {{"named", counts.named}, {"unnamed", counts.unnamed}};
}

using OrderedJson = nlohmann::ordered_json;

OrderedJson Samples(const Account& account) {
  return {{"expected", account.samples_expected},
          {"taken", account.samples_taken},
          {"written", account.samples_written},
          {"set_aside", account.samples_set_aside},
          {"bytes", account.sample_bytes},
          {"lost", account.lost},
          {"clock", {{"due", account.clock_due}, {"ran", account.clock_ran}}},
          {"stolen_seconds", account.stolen_seconds}};
}

OrderedJson Frames(const Account& account) {
  OrderedJson json = {
      {"managed", Counts(account.managed)}, {"native", Counts(account.native)}, {"kernel", Counts(account.kernel)}};
  auto& by_source = json["by_source"];
  for (int i = 0; i < kNameSourceCount; ++i) {
    const absl::string_view word = NameSourceText(static_cast<NameSource>(i));
    by_source[std::string(word)] = account.frames_by_source[static_cast<size_t>(i)];
  }
  json["unnamed_reasons"] = account.unnamed_reasons;
  if (!account.roles.empty()) json["roles"] = account.roles;
  return json;
}

OrderedJson Labels(const ProcessLabels& labels) {
  OrderedJson json = OrderedJson::object();
  labels.ForEach([&](absl::string_view name, const std::string& value) { json[std::string(name)] = value; });
  return json;
}

OrderedJson Processes(const Account& account) {
  OrderedJson rows = OrderedJson::array();
  for (const ProcessAccount& process : account.processes) {
    rows.push_back({{"pid", process.pid},
                    {"comm", process.comm},
                    {"runtime", process.runtime},
                    {"container", process.container},
                    {"container_id", process.container_id},
                    {"pod_uid", process.pod_uid},
                    {"labels", Labels(process.labels)},
                    {"symbol_sources", process.symbol_sources},
                    {"samples", process.samples}});
  }
  return rows;
}

OrderedJson Lines(const Account& account) {
  OrderedJson json = {
      {"frames", account.frames_with_line}, {"pdbs", account.pdbs}, {"without_pdb", account.without_pdb}};
  if (!account.native_lines.empty()) {
    json["native"] = account.native_lines;
    json["native"]["frames"] = account.native_frames_with_line;
  }
  return json;
}

OrderedJson NoticeRows(const Account& account) {
  OrderedJson rows = OrderedJson::array();
  for (const Notice& notice : account.notices) {
    rows.push_back({{"kind", notice.kind}, {"message", notice.message}, {"hint", notice.hint}});
  }
  return rows;
}

OrderedJson Numbers(const PoolNumbers& numbers) {
  OrderedJson json = {
      {"workers", numbers.workers}, {"min_workers", numbers.min_workers}, {"max_workers", numbers.max_workers}};
  if (numbers.queued) json["queued"] = *numbers.queued;
  if (numbers.working) json["working"] = *numbers.working;
  if (numbers.wanted) json["wanted"] = *numbers.wanted;
  return json;
}

}  // namespace

std::string StatsJson(const Account& account, const PoolAccount& pool) {
  OrderedJson json;
  json["samples"] = Samples(account);
  json["frames"] = Frames(account);
  json["stacks"] = {{"complete", account.stacks_complete},
                    {"truncated", account.stacks_truncated},
                    {"broken", account.stacks_broken},
                    {"stops", account.stack_stops},
                    {"marks", account.marks}};
  json["unwind"] = account.unwind;
  json["processes"] = Processes(account);
  json["memory"] = account.memory;
  if (!account.pdbs.empty()) json["lines"] = Lines(account);
  // Actions that a run did not take have no counts.
  const auto add = [&](const char* key, const auto& counts) {
    if (!counts.empty()) json[key] = counts;
  };
  add("code", account.code);
  add("async", account.async);
  add("traces", account.traces);
  add("perf_maps", account.perf_maps);
  add("symbol_server", account.symbol_server);
  add("pauses", account.pauses);
  add("jit", account.jit);
  add("allocations", account.allocations);
  add("waits", account.waits);
  add("thread_pool", pool.verdict);
  if (pool.numbers) json[kPoolNumbersKey] = Numbers(*pool.numbers);
  add("exceptions", account.exceptions);
  add("events", account.events);
  json["notices"] = NoticeRows(account);
  json["notice_counts"] = account.notice_counts;
  json["duration_seconds"] = account.duration_seconds;
  json["self"] = {{"cpu_seconds", account.self_cpu_seconds},
                  {"peak_rss_bytes", account.self_peak_rss_bytes},
                  {"bpf_map_bytes", account.bpf_map_bytes}};
  // Names of processes are bytes, not necessarily UTF-8.
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace clrsampler
