#include "output/stats_json.h"

#include <nlohmann/json.hpp>

namespace clrsampler {
namespace {

nlohmann::ordered_json Counts(const FrameCounts& counts) {
  return {{"named", counts.named}, {"unnamed", counts.unnamed}};
}

}  // namespace

std::string StatsJson(const Account& account, absl::string_view thread_pool) {
  nlohmann::ordered_json json;
  json["samples"] = {{"expected", account.samples_expected},
                     {"taken", account.samples_taken},
                     {"written", account.samples_written},
                     {"set_aside", account.samples_set_aside},
                     {"bytes", account.sample_bytes},
                     {"lost", account.lost},
                     {"clock", {{"due", account.clock_due}, {"ran", account.clock_ran}}},
                     {"stolen_seconds", account.stolen_seconds}};
  json["frames"] = {
      {"managed", Counts(account.managed)}, {"native", Counts(account.native)}, {"kernel", Counts(account.kernel)}};
  auto& by_source = json["frames"]["by_source"];
  for (int i = 0; i < kNameSourceCount; ++i) {
    const absl::string_view word = NameSourceText(static_cast<NameSource>(i));
    by_source[std::string(word)] = account.frames_by_source[static_cast<size_t>(i)];
  }
  json["frames"]["unnamed_reasons"] = account.unnamed_reasons;
  json["stacks"] = {{"complete", account.stacks_complete},
                    {"truncated", account.stacks_truncated},
                    {"broken", account.stacks_broken},
                    {"stops", account.stack_stops},
                    {"marks", account.marks}};
  json["unwind"] = account.unwind;
  json["processes"] = nlohmann::ordered_json::array();
  for (const ProcessAccount& process : account.processes) {
    json["processes"].push_back({{"pid", process.pid},
                                 {"comm", process.comm},
                                 {"runtime", process.runtime},
                                 {"container", process.container},
                                 {"container_id", process.container_id},
                                 {"pod_uid", process.pod_uid},
                                 {"symbol_sources", process.symbol_sources},
                                 {"samples", process.samples}});
  }
  json["memory"] = account.memory;
  if (!account.pdbs.empty()) {
    json["lines"] = {
        {"frames", account.frames_with_line}, {"pdbs", account.pdbs}, {"without_pdb", account.without_pdb}};
    if (!account.native_lines.empty()) {
      json["lines"]["native"] = account.native_lines;
      json["lines"]["native"]["frames"] = account.native_frames_with_line;
    }
  }
  if (!account.code.empty()) json["code"] = account.code;
  if (!account.async.empty()) json["async"] = account.async;
  if (!account.perf_maps.empty()) json["perf_maps"] = account.perf_maps;
  if (!account.symbol_server.empty()) json["symbol_server"] = account.symbol_server;
  if (!account.pauses.empty()) json["pauses"] = account.pauses;
  if (!account.jit.empty()) json["jit"] = account.jit;
  if (!account.allocations.empty()) json["allocations"] = account.allocations;
  if (!account.waits.empty()) json["waits"] = account.waits;
  if (!thread_pool.empty()) json["thread_pool"] = thread_pool;
  if (!account.exceptions.empty()) json["exceptions"] = account.exceptions;
  if (!account.events.empty()) json["events"] = account.events;
  if (!account.roles.empty()) json["frames"]["roles"] = account.roles;
  json["notices"] = nlohmann::ordered_json::array();
  for (const Notice& notice : account.notices) {
    json["notices"].push_back({{"kind", notice.kind}, {"message", notice.message}, {"hint", notice.hint}});
  }
  json["notice_counts"] = account.notice_counts;
  json["duration_seconds"] = account.duration_seconds;
  json["self"] = {{"cpu_seconds", account.self_cpu_seconds},
                  {"peak_rss_bytes", account.self_peak_rss_bytes},
                  {"bpf_map_bytes", account.bpf_map_bytes}};
  // Names of processes are bytes, not necessarily UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace clrsampler
