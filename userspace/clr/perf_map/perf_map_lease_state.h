// One process of perf_map_lease.h, between its two source files: the bookkeeping and the steps.
#ifndef CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_LEASE_STATE_H_
#define CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_LEASE_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "clr/diagnostics_client.h"
#include "clr/perf_map/lease_store.h"
#include "clr/perf_map/perf_map_lease.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "process/target_files.h"

namespace clrsampler {

inline constexpr uint64_t kFirstLeaseWaitNs = 40'000'000;  // less than an iteration of the loop

enum class PerfMapLeases::Stage : uint8_t { kStarting, kAsking, kDisabling, kEnabling, kOn, kEnding, kSettled };

struct PerfMapLeases::ProcessState {
  ProcessState(ProcessKey process_key, TargetFiles target_files) : key(process_key), files(std::move(target_files)) {}

  ProcessKey key;
  uint32_t exec_count = 0;
  TargetIdentity id;
  std::string who;  // "process 42 (Shop)"
  bool surely_dotnet = false;
  bool has_socket = false;
  MonotonicTime wanted;
  TargetFiles files;

  Stage stage = Stage::kStarting;
  MonotonicTime next_try = MonotonicTime::Min();
  uint64_t wait_ns = kFirstLeaseWaitNs;
  int tries = 0;
  int bad_answers = 0;
  std::string directory;
  std::optional<DiagnosticsExchange> exchange;
  std::optional<Lease> lease;
  OpenedFile map;
  int map_descriptor = -1;  // of the target
  MonotonicTime on_since;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_LEASE_STATE_H_
