// A made-up host for tests and benchmarks of the store: windows as real ones are, one after the other.
//
// Processes run programs; those of one program have the same stacks. A stack begins as all of its kind of request do,
// and branches further in; few are frequent and many are rare, so that new ones keep coming, ever fewer.
#ifndef CLRSAMPLER_TESTS_UNIT_STORE_MADE_UP_HOST_H_
#define CLRSAMPLER_TESTS_UNIT_STORE_MADE_UP_HOST_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "profile/window.h"

namespace clrsampler::test_support {

struct MadeUpHostOptions {
  size_t samples = 400;  // a window
  size_t processes = 20;
  size_t programs = 5;
  size_t threads = 8;  // of a process
  size_t methods = 5000;
  size_t requests = 60;  // kinds of them, of a program
  size_t pauses = 20, compilations = 30, allocations = 15, waits = 25;
  uint64_t period_ns = 52'631'578;  // 19 Hz
  uint32_t seed = 1;
};

class MadeUpHost {
 public:
  explicit MadeUpHost(const MadeUpHostOptions& options, uint64_t begin_unix_ns = 1'790'000'000'000'000'000)
      : options_(options), random_(options.seed), now_ns_(begin_unix_ns) {}

  void SkipTo(uint64_t unix_ns) { now_ns_ = unix_ns; }
  uint64_t now_unix_ns() const { return now_ns_; }

  Window Next() {
    constexpr uint64_t kWindowNs = 10'000'000'000;
    Window window;
    window.number = ++number_;
    window.begin_unix_ns = now_ns_;
    window.end_unix_ns = now_ns_ += kWindowNs;
    window.frequency_hz = 19;
    window.frequencies_hz = {19};
    window.rss_bytes = 40 << 20;
    window.account.samples_expected = window.account.samples_taken = options_.samples;
    window.account.samples_written = options_.samples;
    window.account.self_cpu_seconds = 0.05;
    window.account.lost["ring_full"] = Below(3);
    window.account.managed.named = options_.samples * 20;
    for (size_t i = 0; i < options_.processes; ++i) AddProcess(i, window);

    ProfileModelBuilder cpu;
    for (size_t i = 0; i < options_.samples; ++i) {
      const size_t process = Rare(options_.processes);
      const uint32_t die = Below(100);
      const SampleState state = die < 2   ? SampleState::kPaused
                                : die < 3 ? SampleState::kSuspending
                                          : SampleState::kNone;
      cpu.Add({.time_ns = kWindowNs / options_.samples * i,
               .thread = cpu.Thread(ThreadOf(process, Below(options_.threads), cpu)),
               .stack = Stack(process, cpu),
               .state = state,
               .weight = options_.period_ns});
      window.processes[process].samples += 1;
      window.processes[process].cpu_ns[Below(kCpuShareCount)] += options_.period_ns;
    }
    window.cpu = Finish(std::move(cpu), window);

    ProfileModelBuilder jit, suspend, allocations, waits;
    for (size_t i = 0; i < options_.compilations; ++i) AddCompilation(window, jit);
    for (size_t i = 0; i < options_.pauses; ++i) AddPause(window, suspend);
    window.jit = Finish(std::move(jit), window);
    window.suspend_delay = Finish(std::move(suspend), window);
    for (size_t i = 0; i < options_.allocations; ++i) AddAllocation(window, allocations);
    window.allocations = Finish(std::move(allocations), window);
    for (size_t i = 0; i < options_.waits; ++i) AddWait(window, waits);
    window.waits = Finish(std::move(waits), window);
    return window;
  }

 private:
  static constexpr FrameIndex kNotYet = ~FrameIndex{0};

  uint32_t Below(size_t limit) { return static_cast<uint32_t>(random_() % limit); }
  // The first of `limit` are the most frequent, about as 1/rank.
  size_t Rare(size_t limit) {
    const double u = std::generate_canonical<double, 32>(random_);
    return std::min(limit - 1, static_cast<size_t>(std::exp(u * std::log(static_cast<double>(limit) + 1)) - 1));
  }
  static uint64_t Mix(uint64_t a, uint64_t b) {
    uint64_t x = (a + 0x9e3779b97f4a7c15) ^ (b * 0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  static std::string CommOf(size_t program) { return absl::StrCat("Shop.Service", program); }
  static std::string ContainerOf(size_t process) {
    return process % 3 == 0 ? "" : absl::StrCat("shop-", process % 7, "-", process);
  }
  static std::string ContainerIdOf(size_t process) {
    return process % 3 == 0 ? "" : absl::StrCat(process, "c0ffee00c0ffee00c0ffee00c0ffee00");
  }

  void AddProcess(size_t process, Window& window) const {
    WindowProcess& own = window.processes.emplace_back();
    own.pid = static_cast<uint32_t>(1000 + process);
    own.started_boot_ns = 90'000'000'000 + process * 10'000'000;
    own.comm = CommOf(process % options_.programs);
    own.runtime = "10.0.12";
    own.container = ContainerOf(process);
    own.container_id = ContainerIdOf(process);
    own.uid = 1000;
    own.hooked = true;
  }

  ModelThread ThreadOf(size_t process, size_t thread, ProfileModelBuilder& model) const {
    return {.pid = static_cast<uint32_t>(1000 + process),
            .tid = static_cast<uint32_t>(100'000 + process * 100 + thread),
            .comm = model.String(CommOf(process % options_.programs)),
            .name = model.String(thread == 0 ? "main" : absl::StrCat(".NET TP Worker", thread % 3)),
            .container_id = model.String(ContainerIdOf(process))};
  }

  FrameIndex Frame(uint64_t method, ProfileModelBuilder& model) {
    method %= options_.methods;
    if (&model != frames_of_) frames_.assign(options_.methods, kNotYet);
    frames_of_ = &model;
    FrameIndex& frame = frames_[method];
    if (frame != kNotYet) return frame;
    const bool native = method % 10 == 0;
    return frame = model.Frame(
               {.kind = native ? ModelFrameKind::kNative : ModelFrameKind::kJit,
                .name = model.String(absl::StrCat("Shop.Module", method % 97, ".Handlers.Type", method / 12,
                                                  "<System.__Canon>.Method", method, "(System.String, int32)")),
                .source = model.String(native ? "elf-symtab" : "memory"),
                .module = model.String(absl::StrCat("Shop.Module", method % 97)),
                .module_path = model.String(native ? absl::StrCat("/usr/share/dotnet/lib", method % 9, ".so") : ""),
                .tier = model.String(native ? "" : "OptimizedTier1")});
  }

  // 30 to 60 frames: 15 of the program, 12 of the kind of request, then those of one of its variants. Variant r is
  // drawn with a probability of about r^-1.43. So n samples of a program have some 4 * n^0.7 distinct stacks: 2,500 of
  // 10,000, 60,000 of a million. Variant r differs from variant r/2 from some frame on.
  NodeIndex Stack(size_t process, ProfileModelBuilder& model) {
    const uint64_t program = process % options_.programs;
    const uint64_t request = Mix(program, 1000 + Rare(options_.requests));
    const double u = std::max(1e-3, std::generate_canonical<double, 32>(random_));
    const auto variant = static_cast<uint64_t>(std::pow(u, -1 / 0.43));
    path_.clear();
    for (int shift = 63 - std::countl_zero(variant); shift >= 0; --shift) {
      const uint64_t hash = Mix(request, variant >> shift);
      if (!path_.empty()) path_.resize(1 + hash % path_.size());
      const size_t more = shift == 63 - std::countl_zero(variant) ? 10 + hash % 12 : 1 + (hash >> 32) % 10;
      // From the first other method on it goes as it goes from that one anywhere.
      uint64_t method = hash % options_.methods;
      for (size_t i = 0; i < more && path_.size() < 33; ++i) {
        path_.push_back(method);
        method = Mix(7, method) % options_.methods;
      }
    }
    NodeIndex node = kRootNode;
    for (uint64_t i = 0; i < 15; ++i) node = model.Node(node, Frame(Mix(program, i), model));
    for (uint64_t i = 0; i < 12; ++i) node = model.Node(node, Frame(Mix(request, i), model));
    for (const uint64_t method : path_) node = model.Node(node, Frame(method, model));
    return node;
  }

  void AddAllocation(Window& window, ProfileModelBuilder& model) {
    const size_t process = Rare(options_.processes);
    const uint64_t bytes = 100'000 + Below(1'000'000);
    const FrameIndex type =
        model.Frame({.kind = ModelFrameKind::kType, .name = model.String(absl::StrCat("Shop.Type", Rare(200)))});
    model.Add({.thread = model.Thread(ThreadOf(process, Below(options_.threads), model)),
               .stack = model.Node(Stack(process, model), type),
               .weight = bytes});
    window.processes[process].allocated_bytes += bytes;
  }

  void AddWait(Window& window, ProfileModelBuilder& model) {
    const size_t process = Rare(options_.processes);
    const uint64_t ns = 1'000'000 + Below(9'000'000);
    const auto kind = static_cast<WaitKind>(Below(kWaitKindCount));
    const FrameIndex mark =
        model.Frame({.kind = ModelFrameKind::kMark, .name = model.String(absl::StrCat("[", WaitKindText(kind), "]"))});
    model.Add({.thread = model.Thread(ThreadOf(process, Below(options_.threads), model)),
               .stack = model.Node(Stack(process, model), mark),
               .weight = ns});
    window.processes[process].waits.by_kind[static_cast<size_t>(kind)] += ns;
  }

  void AddCompilation(Window& window, ProfileModelBuilder& model) {
    const size_t process = Rare(options_.processes);
    const uint64_t ns = 100'000 + Below(5'000'000);
    window.methods.push_back({.process = static_cast<uint32_t>(process),
                              .method = absl::StrCat("Shop.Type", Rare(200), ".Method", Rare(50), "()"),
                              .tier = Below(2) == 0 ? "QuickJitted" : "OptimizedTier1",
                              .count = 1,
                              .total_ns = ns,
                              .longest_ns = ns,
                              .bytes = 200 + Below(1000)});
    WindowProcess& own = window.processes[process];
    ++own.compilations;
    own.compile_ns += ns;
    model.Add({.time_ns = ns,
               .thread = model.Thread(ThreadOf(process, 0, model)),
               .stack = Stack(process, model),
               .weight = ns});
  }

  void AddPause(Window& window, ProfileModelBuilder& model) {
    const size_t process = Rare(options_.processes);
    WindowPause& pause = window.pauses.emplace_back();
    pause.process = static_cast<uint32_t>(process);
    pause.requested_unix_ns = window.begin_unix_ns + Below(1'000'000'000);
    pause.suspend_ns = 1 + Below(1'000'000);
    pause.pause_ns = pause.suspend_ns + Below(50'000'000);
    pause.kind = Below(4) == 0 ? "background-initial" : "blocking";
    pause.reason = "gc";
    pause.gc_reason = "alloc-soh";
    pause.generation = Below(3);
    pause.gc_index = ++gc_index_;
    pause.tid = static_cast<uint32_t>(100'000 + process * 100);
    pause.thread_name = "main";
    if (Below(3) == 0) pause.culprits.push_back({"Shop.Slow.Call()", pause.tid + 1, pause.suspend_ns, 1});
    WindowProcess& own = window.processes[process];
    ++own.pauses;
    own.pause_ns += pause.pause_ns;
    own.suspend_ns += pause.suspend_ns;
    ++own.collections[*pause.generation];
    model.Add({.time_ns = 1,
               .thread = model.Thread(ThreadOf(process, 1, model)),
               .stack = Stack(process, model),
               .weight = pause.suspend_ns});
  }

  ProfileModel Finish(ProfileModelBuilder&& builder, const Window& window) {
    frames_of_ = nullptr;
    builder.meta().start_unix_ns = window.begin_unix_ns;
    builder.meta().unit = WeightUnit::kNanoseconds;
    builder.meta().whole_host = true;
    return *std::move(builder).Build();
  }

  const MadeUpHostOptions options_;
  std::mt19937 random_;
  uint64_t now_ns_;
  uint64_t number_ = 0, gc_index_ = 0;
  std::vector<uint64_t> path_;
  std::vector<FrameIndex> frames_;  // of each method, in a model that is being filled
  const ProfileModelBuilder* frames_of_ = nullptr;
};

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_STORE_MADE_UP_HOST_H_
