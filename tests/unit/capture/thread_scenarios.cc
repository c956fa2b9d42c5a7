// The creators of threads: what the kernel tells of threads and processes that this one makes.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "capture/feature_report.h"
#include "capture/sampler.h"
#include "clrsampler/wire.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"
#include "unit/capture/live_targets.h"

namespace clrsampler::test_support {
namespace {

constexpr int kThreads = 20;

uint32_t OwnThreadId() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

// Makes a thread, waits for its end, and gives its number.
uint32_t MakeThread() {
  std::atomic<uint32_t> made{0};
  std::thread([&made] { made = OwnThreadId(); }).join();
  return made;
}

}  // namespace

absl::Status ThreadsAreToldWithTheirCreator(ScenarioSetting& setting) {
  SamplerOptions options;
  options.filter_processes = true;
  options.frequency_hz = setting.frequency;
  options.thread_creations = true;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  RETURN_IF_ERROR((*sampler)->Start());

  std::vector<uint32_t> made;
  for (int i = 0; i < kThreads; ++i) made.push_back(MakeThread());
  // A process is none, and neither are the threads of another process.
  const pid_t child = fork();
  if (child == 0) {
    MakeThread();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  (*sampler)->StopSampling();
  MakeThread();  // is told no more

  std::vector<wire_thread> records;
  std::map<uint64_t, wire_cpu_sample> stacks;  // by their times
  (*sampler)->Drain([&](std::span<const std::byte> record) {
    wire_header header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.kind == WIRE_THREAD) std::memcpy(&records.emplace_back(), record.data(), sizeof(wire_thread));
    if (header.kind == WIRE_THREAD_STACK) stacks[header.time_ns] = Decode(record).head;
  });
  if (records.size() != made.size()) {
    return absl::InternalError(absl::StrCat(records.size(), " records of ", made.size(), " threads"));
  }
  for (size_t i = 0; i < made.size(); ++i) {
    const wire_thread& record = records[i];
    const auto stack = stacks.find(record.header.time_ns);
    if (record.created_tid != made[i] || record.tid != OwnThreadId() ||
        record.tgid != static_cast<uint32_t>(getpid()) || record.has_stack == 0 || stack == stacks.end() ||
        stack->second.tid != record.tid || stack->second.ip == 0) {
      return absl::InternalError(absl::StrCat("record ", i, ": thread ", record.tid, " of ", record.tgid, " made ",
                                              record.created_tid, " in place of ", made[i],
                                              stack == stacks.end() ? ", without a stack" : ""));
    }
  }
  const wire_counters counters = (*sampler)->counters();
  if (counters.threads_sent != made.size() || counters.threads_lost != 0) {
    return absl::InternalError(absl::StrCat(counters.threads_sent, " sent, ", counters.threads_lost, " lost"));
  }
  return absl::OkStatus();
}

}  // namespace clrsampler::test_support
