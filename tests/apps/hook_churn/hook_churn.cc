// hook_churn ROUNDS PID...: plants all hooks in the runtimes of these processes and takes them out again, so many
// times, while they run. Prints what the hooks reported meanwhile; ends with an error when they could not be planted
// or, in all rounds together, reported nothing of a process.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "capture/feature_report.h"
#include "capture/sampler.h"
#include "clr/runtime_discovery.h"
#include "os/clock.h"
#include "process/image_files.h"
#include "process/process_table.h"
#include "runtime_events/hook_planter.h"
#include "status/notices.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Probes are in place for 0 to 7 ms: long enough for some hits, of which some are on their way when they go.
constexpr uint32_t kHolds = 8, kHoldUs = 1000;

void CountEvents(Sampler& sampler, std::map<uint32_t, uint64_t>& events) {
  sampler.Drain([&](std::span<const std::byte> record) {
    wire_header header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.kind == WIRE_RUNTIME_EVENT) {
      wire_runtime_event event;
      std::memcpy(&event, record.data(), sizeof event);
      ++events[event.tgid];
    } else if (header.kind == WIRE_COMPILED) {
      wire_compiled event{};
      std::memcpy(&event, record.data(), std::min(record.size(), sizeof event));
      ++events[event.tgid];
    }
  });
}

absl::Status Churn(uint64_t rounds, const std::vector<uint32_t>& pids) {
  SamplerOptions options;
  options.filter_processes = true;
  options.suspension_hooks = options.jit_hooks = true;
  absl::StatusOr<std::unique_ptr<Sampler>> sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const SystemClock clock;
  ProcessTable table("/proc", clock);
  ImageFiles images;
  Notices notices;
  RuntimeDiscovery runtimes(images, RuntimeDiscovery::CacheBy::kFile);
  for (const uint32_t pid : pids) RETURN_IF_ERROR((*sampler)->Track(static_cast<pid_t>(pid)));

  std::map<uint32_t, uint64_t> events;
  for (uint64_t round = 0; round < rounds; ++round) {
    HookPlanterOptions hooks;
    hooks.suspensions = hooks.compilations = true;
    hooks.attach = [&](const HookPlace& place, const std::string& path) { return (*sampler)->AttachHook(place, path); };
    HookPlanter planter(std::move(hooks), runtimes, images, notices, clock);
    for (const uint32_t pid : pids) {
      const Process& process = table.FindOrScan(pid, 0);
      planter.HookRuntimeOf(process);
      RETURN_IF_ERROR(planter.CheckSuspensions(process.key));
      RETURN_IF_ERROR(planter.CheckCompilations(process.key));
    }
    usleep(static_cast<useconds_t>(round % kHolds) * kHoldUs);
    planter.Finish();
    CountEvents(**sampler, events);
  }
  if (events.empty()) return absl::InternalError("the hooks reported nothing");
  for (const uint32_t pid : pids) {
    std::printf("process %u: %llu events in %llu rounds\n", pid, static_cast<unsigned long long>(events[pid]),
                static_cast<unsigned long long>(rounds));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace clrsampler

int main(int argc, char** argv) {
  uint64_t rounds = 0;
  std::vector<uint32_t> pids;
  bool usable = argc > 2 && absl::SimpleAtoi(argv[1], &rounds) && rounds > 0;
  for (int i = 2; i < argc && usable; ++i) usable = absl::SimpleAtoi(argv[i], &pids.emplace_back());
  if (!usable) {
    std::fprintf(stderr, "usage: hook_churn ROUNDS PID...\n");
    return 2;
  }
  const absl::Status done = clrsampler::Churn(rounds, pids);
  if (!done.ok()) std::fprintf(stderr, "error: %s\n", std::string(done.message()).c_str());
  return done.ok() ? 0 : 1;
}
