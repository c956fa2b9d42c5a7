// Who awaits what runs: objects of a made-up runtime, which a process holds in its memory and points to from its stack.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "capture/feature_report.h"
#include "capture/sampler.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "process/cpu_time.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"

namespace clrsampler::testing {
namespace {

constexpr uint32_t kBoxRow = 700, kActionRow = 701, kAwaitRow = 702, kOtherRow = 703;
constexpr uint64_t kGiveUpNs = 60'000'000'000;

// Where types keep their row, and objects their links.
wire_async_layout Layout() {
  wire_async_layout layout{};
  layout.row_shift = 8;
  layout.task_link = 32;
  layout.box_rows[1] = kBoxRow;
  layout.action_row = kActionRow;
  layout.action_link = 16;
  layout.await_rows[2] = kAwaitRow;
  layout.await_link = 24;
  return layout;
}

struct Type {
  explicit Type(uint32_t row) : row_and_flags(row << 8 | 3) {}
  uint64_t flags = 0;
  uint32_t row_and_flags;
  uint32_t unused = 0;
};

struct Object {
  Object(const Type& type, uint32_t link, const Object* next) {
    words[0] = reinterpret_cast<uint64_t>(&type);
    for (uint64_t i = 1; i < std::size(words); ++i) words[i] = 0xABCD000000000001 + i;
    words[link / 8] = reinterpret_cast<uint64_t>(next);
  }
  uint64_t words[WIRE_ASYNC_WORDS];
};

struct Heap {
  const Type box_type{kBoxRow}, action_type{kActionRow}, await_type{kAwaitRow}, other_type{kOtherRow};
  const Object outer{box_type, 32, nullptr};
  const Object action{action_type, 16, &outer};
  const Object await{await_type, 24, &action};
  const Object task{other_type, 32, &await};
  const Object box{box_type, 32, &task};
  const Object no_box{other_type, 32, &outer};
};

// The beginning of the address space is where all machines have memory of programs.
const Heap* MakeHeap() {
  void* const at = mmap(reinterpret_cast<void*>(uintptr_t{1} << 29), sizeof(Heap), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : new (at) Heap();
}

// Computes, with pointers to two objects on its stack; only one is a box.
[[noreturn]] void Burn(const Heap& heap) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const volatile uint64_t held[] = {reinterpret_cast<uint64_t>(&heap.no_box), reinterpret_cast<uint64_t>(&heap.box), 7};
  volatile uint64_t sink = 0;
  while (true) sink = sink * held[2] + held[0] + held[1];
}

std::vector<wire_async_object> ObjectsOf(std::span<const std::byte> record) {
  wire_cpu_sample sample;
  std::memcpy(&sample, record.data(), sizeof sample);
  const size_t count = sample.flags >> WIRE_SAMPLE_ASYNC_SHIFT & WIRE_SAMPLE_ASYNC_MASK;
  std::vector<wire_async_object> objects(count);
  const size_t bytes = count * sizeof(wire_async_object);
  if (bytes > record.size() - sizeof sample) return {};
  std::memcpy(objects.data(), record.data() + record.size() - bytes, bytes);
  return objects;
}

bool IsWholeChain(const Heap& heap, std::span<const wire_async_object> objects) {
  const Object* const chain[] = {&heap.box, &heap.task, &heap.await, &heap.action, &heap.outer};
  return std::ranges::equal(objects, chain, [&](const wire_async_object& copied, const Object* object) {
    const uint64_t address = reinterpret_cast<uint64_t>(object) | (object == &heap.box ? WIRE_ASYNC_ROOT : 0);
    return copied.address == address && std::ranges::equal(copied.words, object->words);
  });
}

struct Burner {
  explicit Burner(const Heap& heap) : pid(fork()) {
    if (pid == 0) Burn(heap);
  }
  ~Burner() {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  Burner(const Burner&) = delete;
  Burner& operator=(const Burner&) = delete;
  const pid_t pid;
};

struct Found {
  uint64_t samples = 0, with_objects = 0, whole = 0;
};

// Samples the process until it has used so much CPU time.
Found Watch(Sampler& sampler, const Heap& heap, pid_t pid, double seconds) {
  const SystemClock clock;
  const uint64_t give_up = clock.Now().ns + kGiveUpNs;
  const auto used = [&] { return ProcessCpuNs(static_cast<uint32_t>(pid)).value_or(0); };
  const uint64_t end = used() + static_cast<uint64_t>(seconds * 1e9);
  Found found;
  while (used() < end && clock.Now().ns < give_up) {
    usleep(20'000);
    sampler.Drain([&](std::span<const std::byte> record) {
      const std::vector<wire_async_object> objects = ObjectsOf(record);
      ++found.samples;
      found.with_objects += objects.empty() ? 0 : 1;
      found.whole += IsWholeChain(heap, objects) ? 1 : 0;
    });
  }
  return found;
}

}  // namespace

absl::Status WhoAwaitsIsCopied(ScenarioSetting& setting) {
  const Heap* const heap = MakeHeap();
  if (heap == nullptr) return absl::InternalError("no memory for the objects");
  const Burner burner(*heap);
  SamplerOptions options;
  options.filter_processes = true;
  options.only_process = burner.pid;
  options.frequency_hz = setting.frequency;
  options.async_objects = true;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(burner.pid));
  RETURN_IF_ERROR((*sampler)->Start());
  const Found before = Watch(**sampler, *heap, burner.pid, setting.seconds / 3);
  RETURN_IF_ERROR((*sampler)->SetAsyncLayout(burner.pid, Layout()));
  (*sampler)->Drain([](std::span<const std::byte>) {});
  const Found told = Watch(**sampler, *heap, burner.pid, setting.seconds / 3);
  (*sampler)->ForgetAsyncLayout(burner.pid);
  (*sampler)->Drain([](std::span<const std::byte>) {});
  const Found after = Watch(**sampler, *heap, burner.pid, setting.seconds / 3);
  setting.notes += absl::StrCat(" ", told.whole, " of ", told.samples, " samples with the whole chain");
  const auto fail = [](const auto&... parts) { return absl::InternalError(absl::StrCat(parts...)); };
  if (before.samples == 0 || before.with_objects != 0) {
    return fail(before.with_objects, " of ", before.samples, " samples with objects, of a layout that nobody told");
  }
  // One sample may have begun before.
  if (after.samples == 0 || after.with_objects > 1) {
    return fail(after.with_objects, " of ", after.samples, " samples with objects, of a layout that was taken back");
  }
  if (told.samples == 0 || told.whole + 1 < told.samples) {
    return fail(told.whole, " whole chains in ", told.samples, " samples, ", told.with_objects, " with objects");
  }
  return absl::OkStatus();
}

}  // namespace clrsampler::testing
