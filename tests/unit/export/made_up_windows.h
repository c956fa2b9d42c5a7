// Made-up windows for tests of the server: some processes that run methods, and pause and compile.
#ifndef CLRSAMPLER_TESTS_UNIT_EXPORT_MADE_UP_WINDOWS_H_
#define CLRSAMPLER_TESTS_UNIT_EXPORT_MADE_UP_WINDOWS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/profile/profile_model.h"
#include "profile/window.h"

namespace clrsampler::test_support {

inline constexpr uint64_t kMadeUpSecond = 1'000'000'000;
inline constexpr uint64_t kMadeUpStart = 1'790'000'000 * kMadeUpSecond;
inline constexpr uint64_t kMadeUpSample = 50'000'000;  // a sample stands for 50 ms

// Adds a process and its samples, spread evenly over the window.
class WindowBuilder {
 public:
  WindowBuilder(uint64_t number, uint64_t begin_unix_ns, uint64_t length_ns = 10 * kMadeUpSecond) {
    window_.number = number;
    window_.begin_unix_ns = begin_unix_ns;
    window_.end_unix_ns = begin_unix_ns + length_ns;
    window_.frequency_hz = 20;
    window_.frequencies_hz = {20};
    for (auto* builder : {&cpu_, &delay_, &jit_, &allocations_, &waits_}) {
      ProfileMeta& meta = builder->meta();
      meta.unit = WeightUnit::kNanoseconds;
      meta.start_unix_ns = begin_unix_ns;
      meta.duration_ns = length_ns;
      meta.whole_host = true;
      meta.host = "web-3";
      meta.creator = "clrsampler 0.1.0";
    }
    delay_.meta().view = ProfileView::kSuspendDelay;
    jit_.meta().view = ProfileView::kJit;
    allocations_.meta().view = ProfileView::kAllocations;
    allocations_.meta().unit = WeightUnit::kBytes;
    waits_.meta().view = ProfileView::kOffCpu;
  }

  WindowProcess& Process(uint32_t pid, const std::string& comm, size_t samples, bool dotnet = true,
                         const std::string& container = "") {
    WindowProcess process;
    process.pid = pid;
    process.started_boot_ns = pid * kMadeUpSecond;
    process.comm = comm;
    if (dotnet) process.runtime = "10.0.12";
    process.hooked = dotnet;
    process.container = container;
    if (!container.empty()) process.container_id = "0123456789abcdef0123456789abcdef";
    process.samples = samples;
    process.cpu_ns[static_cast<size_t>(dotnet ? CpuShare::kManaged : CpuShare::kNative)] = samples * kMadeUpSample;
    const uint64_t length = window_.end_unix_ns - window_.begin_unix_ns;
    for (size_t i = 0; i < samples; ++i) {
      ModelThread thread;
      thread.pid = pid;
      thread.tid = pid + static_cast<uint32_t>(i % 2);
      thread.comm = cpu_.String(comm);
      thread.name = cpu_.String(i % 2 == 0 ? "main" : "worker");
      const FrameIndex frames[] = {Frame(absl::StrCat(comm, ".Main")), Frame(absl::StrCat(comm, ".Work", i % 3))};
      ModelSample sample;
      sample.time_ns = length * i / samples;
      sample.thread = cpu_.Thread(thread);
      sample.stack = cpu_.Stack(frames);
      sample.state = i % 10 == 9 ? SampleState::kPaused : SampleState::kNone;
      sample.weight = kMadeUpSample;
      cpu_.Add(sample);
    }
    window_.account.samples_expected += samples;
    window_.account.samples_taken += samples;
    window_.account.samples_written += samples;
    window_.processes.push_back(std::move(process));
    return window_.processes.back();
  }

  // Those of the last process.
  void Pause(uint64_t at_ns, uint64_t pause_ns, uint64_t suspend_ns, uint32_t generation, bool listed = true) {
    WindowProcess& process = window_.processes.back();
    ++process.pauses;
    process.pause_ns += pause_ns;
    process.suspend_ns += suspend_ns;
    ++process.collections[generation];
    if (!listed) {
      ++window_.pauses_left_out;
      return;
    }
    WindowPause pause;
    pause.process = static_cast<uint32_t>(window_.processes.size() - 1);
    pause.requested_unix_ns = window_.begin_unix_ns + at_ns;
    pause.pause_ns = pause_ns;
    pause.suspend_ns = suspend_ns;
    pause.kind = "blocking";
    pause.reason = "gc";
    pause.gc_reason = "alloc-soh";
    pause.generation = generation;
    pause.tid = process.pid;
    pause.thread_name = "main";
    pause.culprits.push_back({"Shop.Busy", process.pid + 1, suspend_ns, 2});
    window_.pauses.push_back(std::move(pause));
  }

  void Method(const std::string& method, const std::string& tier, uint64_t count, uint64_t total_ns) {
    WindowProcess& process = window_.processes.back();
    process.compilations += count;
    process.compile_ns += total_ns;
    WindowMethod entry;
    entry.process = static_cast<uint32_t>(window_.processes.size() - 1);
    entry.method = method;
    entry.tier = tier;
    entry.count = count;
    entry.total_ns = entry.longest_ns = total_ns;
    entry.bytes = 100;
    window_.methods.push_back(std::move(entry));
  }

  // The same: in its method Work0.
  void Allocate(const std::string& type, uint64_t bytes) {
    WindowProcess& process = window_.processes.back();
    process.allocated_bytes += bytes;
    const auto node = [&](NodeIndex caller, ModelFrameKind kind, const std::string& name) {
      return allocations_.Node(caller, allocations_.Frame({.kind = kind, .name = allocations_.String(name)}));
    };
    const NodeIndex method = node(kRootNode, ModelFrameKind::kJit, absl::StrCat(process.comm, ".Work0"));
    const ThreadIndex thread =
        allocations_.Thread({.pid = process.pid, .tid = process.pid, .comm = allocations_.String(process.comm)});
    allocations_.Add({.thread = thread, .stack = node(method, ModelFrameKind::kType, type), .weight = bytes});
  }

  // The same: below its method Work0, ended by a thread of its own.
  void Wait(WaitKind kind, uint64_t ns) {
    WindowProcess& process = window_.processes.back();
    process.waits.by_kind[static_cast<size_t>(kind)] += ns;
    const auto node = [&](NodeIndex caller, ModelFrameKind kind_of_frame, const std::string& name) {
      return waits_.Node(caller, waits_.Frame({.kind = kind_of_frame, .name = waits_.String(name)}));
    };
    NodeIndex stack = node(kRootNode, ModelFrameKind::kJit, absl::StrCat(process.comm, ".Work0"));
    stack = node(stack, ModelFrameKind::kMark, absl::StrCat("[", WaitKindText(kind), "]"));
    stack = node(stack, ModelFrameKind::kMark, "[woken by thread owner]");
    stack = node(stack, ModelFrameKind::kJit, absl::StrCat(process.comm, ".Release"));
    const ThreadIndex thread =
        waits_.Thread({.pid = process.pid, .tid = process.pid, .comm = waits_.String(process.comm)});
    waits_.Add({.thread = thread, .stack = stack, .weight = ns});
  }

  Window& window() { return window_; }
  std::shared_ptr<const Window> Build() {
    window_.cpu = *std::move(cpu_).Build();
    window_.suspend_delay = *std::move(delay_).Build();
    window_.jit = *std::move(jit_).Build();
    window_.allocations = *std::move(allocations_).Build();
    window_.waits = *std::move(waits_).Build();
    return std::make_shared<const Window>(std::move(window_));
  }

 private:
  FrameIndex Frame(const std::string& name) {
    ModelFrame frame;
    frame.kind = ModelFrameKind::kJit;
    frame.name = cpu_.String(name);
    frame.module = cpu_.String(name.substr(0, name.find('.')));
    frame.system_name =
        cpu_.String(absl::StrCat(name.substr(0, name.find('.')), ".Program::", name.substr(name.find('.') + 1)));
    return cpu_.Frame(frame);
  }

  Window window_;
  ProfileModelBuilder cpu_, delay_, jit_, allocations_, waits_;
};

// Window `number` of a host with a .NET shop in a container, and a native proxy.
inline std::shared_ptr<const Window> ShopWindow(uint64_t number, uint64_t length_ns = 10 * kMadeUpSecond,
                                                uint64_t start_unix_ns = kMadeUpStart) {
  WindowBuilder builder(number, start_unix_ns + (number - 1) * length_ns, length_ns);
  builder.Process(4711, "Shop", 100, true, "shop-web");
  builder.Pause(length_ns / 2, 20'000'000, 1'000'000, 1);
  builder.Pause(length_ns / 4, 300'000, 40'000, 0);
  builder.Method("Shop.Order.Total()", "OptimizedTier1", 2, 5'000'000);
  builder.Allocate("Shop.Order", 40'000'000);
  builder.Allocate("string", 2'000'000);
  builder.Wait(WaitKind::kMonitor, 3 * kMadeUpSecond);
  builder.Wait(WaitKind::kTaskWait, kMadeUpSecond);
  builder.window().processes.back().waits.running_ns = 5 * kMadeUpSecond;
  builder.Process(99, "envoy", 40, false);
  builder.window().account.managed = {200, 3};
  builder.window().account.lost["ring_full"] = 1;
  builder.window().account.waits = {{"kept", 2}, {"short", 70}, {"passed_over", 8}, {"records_lost", 1}};
  builder.window().account.self_cpu_seconds = 0.1;
  builder.window().account.notices.push_back({"jitdump_dead", "a jitdump ended", "start it anew"});
  builder.window().account.notice_counts["jitdump_dead"] = 1;
  builder.window().rss_bytes = 60 << 20;
  return builder.Build();
}

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_EXPORT_MADE_UP_WINDOWS_H_
