// Awaiters of running code: objects of a made-up runtime, which a process holds in its memory and points to from its
// stack.
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
#include "clrsampler/wire_runtime_async.h"
#include "os/clock.h"
#include "process/cpu_time.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"

namespace clrsampler::test_support {
namespace {

constexpr uint32_t kBoxRow = 700, kActionRow = 701, kAwaitRow = 702, kOtherRow = 703, kTaskRow = 704,
                   kContinuationRow = 705, kHelperRow = 706;
constexpr uint64_t kGiveUpNs = 60'000'000'000;

// Where types keep their row, and objects their links.
wire_async_layouts Layout() {
  wire_async_layouts layout{};
  layout.tasks.row_shift = 8;
  layout.tasks.task_link = 32;
  layout.tasks.task_flags = 48;
  layout.tasks.box_rows[1] = kBoxRow;
  layout.tasks.action_row = kActionRow;
  layout.tasks.action_link = 16;
  layout.tasks.await_rows[2] = kAwaitRow;
  layout.tasks.await_link = 24;
  layout.runtime.task_row = kTaskRow;
  layout.runtime.state_link = 16;
  layout.runtime.continuation_rows[0] = kContinuationRow;
  layout.runtime.continuation_rows[3] = kHelperRow;
  layout.runtime.parent_link = 16;
  layout.runtime.next_link = 8;
  layout.runtime.info_link = 16;
  layout.runtime.owner_link = 40;
  layout.runtime.suspended_at = 8;
  return layout;
}

struct Type {
  explicit Type(uint32_t row, const Type* base = nullptr) : row_and_flags(row << 8 | 3), parent(base) {}
  uint32_t flags = 0;
  uint32_t base_size = sizeof(uint64_t) * (WIRE_ASYNC_WORDS + 1);
  uint32_t row_and_flags;
  uint32_t unused = 0;
  const Type* parent;
};

// Where a method is suspended.
struct ResumeInfo {
  uint64_t resume, suspended_at;
};

struct Object {
  Object(const Type& type, uint32_t link, const Object* next) {
    words[0] = reinterpret_cast<uint64_t>(&type);
    for (uint64_t i = 1; i < std::size(words); ++i) words[i] = 0xABCD000000000001 + i;
    words[link / 8] = reinterpret_cast<uint64_t>(next);
  }
  Object& Link(uint32_t link, const void* to) {
    words[link / 8] = reinterpret_cast<uint64_t>(to);
    return *this;
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
  // Its method has run to completion.
  const Object ended = Object(box_type, 32, &outer).Link(48, reinterpret_cast<const void*>(uintptr_t{0x1000000}));
  // A task of methods that the runtime makes async, which a box awaits. Two of them are suspended; types of theirs have
  // no row. A third type without one derives from another class.
  const Type task_type{kTaskRow}, continuation_type{kContinuationRow}, helper_type{kHelperRow};
  const Type made_type{0, &continuation_type}, other_made_type{0, &other_type};
  const ResumeInfo info{1, 0x7000'1234};
  const Object second = Object(made_type, 8, nullptr).Link(16, &info);
  const Object first = Object(helper_type, 8, &second).Link(16, nullptr);
  const Object awaiting = Object(task_type, 32, &box).Link(16, &first);
  const Object running = Object(task_type, 32, &awaiting).Link(16, nullptr);
  const Object next = Object(made_type, 8, nullptr).Link(16, &info);
  const Object no_continuation{other_made_type, 8, &second};
};

// The beginning of the address space is where all machines have memory of programs.
const Heap* MakeHeap() {
  void* const at = mmap(reinterpret_cast<void*>(uintptr_t{1} << 29), sizeof(Heap), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : new (at) Heap();
}

uint64_t WordOf(const Object& object) { return reinterpret_cast<uint64_t>(&object); }

// A dispatcher's info leads to the one further out, so that a frame pointer there makes it look like a frame: a saved
// frame pointer, and a word in the place of the return address.
[[noreturn]] void BurnInNestedDispatcher(const Heap& heap) {
  struct {
    volatile uint64_t info[3], outer[2];
  } stack{};
  stack.info[0] = reinterpret_cast<uint64_t>(&stack.outer);
  stack.info[1] = WordOf(heap.next);
  stack.info[2] = WordOf(heap.running);
#if defined(__x86_64__)
  asm volatile("mov %0, %%rbp\n1: jmp 1b" : : "r"(&stack.info) : "memory");
#else
  asm volatile("mov x29, %0\n1: b 1b" : : "r"(&stack.info) : "memory");
#endif
  __builtin_unreachable();
}

enum class Held { kMachine, kRuntimeAsync, kNestedDispatcher };

// Computes, with pointers to objects on its stack: those of the runtime's async methods, or of a state machine. The
// first and the last of them are never copied.
[[noreturn]] void Burn(const Heap& heap, Held what) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (what == Held::kNestedDispatcher) BurnInNestedDispatcher(heap);
  const bool runtime_async = what == Held::kRuntimeAsync;
  const volatile uint64_t held[] = {WordOf(runtime_async ? heap.no_continuation : heap.no_box),
                                    WordOf(runtime_async ? heap.next : heap.box),
                                    runtime_async ? WordOf(heap.running) : 7, WordOf(heap.ended)};
  volatile uint64_t sink = 0;
  while (true) sink = sink * held[2] + held[0] + held[1] + held[3];
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

wire_async_object CopyOf(const Object& object, uint64_t marks = 0, uint64_t suspended_at = 0) {
  wire_async_object copy;
  copy.address = reinterpret_cast<uint64_t>(&object) | marks;
  std::ranges::copy(object.words, copy.words);
  if ((marks & WIRE_ASYNC_CONTINUATION) != 0) copy.words[WIRE_ASYNC_SUSPENDED_AT] = suspended_at;
  return copy;
}

// The words that the sampler has to copy, by address.
std::vector<wire_async_object> ChainOf(const Heap& heap, bool runtime_async) {
  std::vector<wire_async_object> chain{CopyOf(heap.box, runtime_async ? 0 : WIRE_ASYNC_ROOT), CopyOf(heap.task),
                                       CopyOf(heap.await), CopyOf(heap.action), CopyOf(heap.outer)};
  if (runtime_async) {
    chain.push_back(CopyOf(heap.running, WIRE_ASYNC_ROOT));
    chain.push_back(CopyOf(heap.awaiting));
    chain.push_back(CopyOf(heap.first, WIRE_ASYNC_CONTINUATION));
    chain.push_back(CopyOf(heap.second, WIRE_ASYNC_CONTINUATION, heap.info.suspended_at));
    chain.push_back(CopyOf(heap.next, WIRE_ASYNC_CONTINUATION | WIRE_ASYNC_ROOT, heap.info.suspended_at));
  }
  std::ranges::sort(chain, {}, &wire_async_object::address);
  return chain;
}

// In any order: objects that a register holds come before those on the stack. Any of them may be a root, since a
// register of the process that forked may still hold its address.
bool IsWholeChain(const std::vector<wire_async_object>& chain, std::vector<wire_async_object> objects) {
  std::ranges::sort(objects, {}, &wire_async_object::address);
  return std::ranges::equal(objects, chain, [](const wire_async_object& copied, const wire_async_object& expected) {
    const bool same = copied.address == expected.address || copied.address == (expected.address | WIRE_ASYNC_ROOT);
    return same && std::ranges::equal(copied.words, expected.words);
  });
}

struct Burner {
  Burner(const Heap& heap, Held what) : pid(fork()) {
    if (pid == 0) Burn(heap, what);
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
Found Watch(Sampler& sampler, const std::vector<wire_async_object>& chain, pid_t pid, double seconds) {
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
      found.whole += IsWholeChain(chain, objects) ? 1 : 0;
    });
  }
  return found;
}

absl::Status IsCopied(ScenarioSetting& setting, const Heap& heap, Held what) {
  const Burner burner(heap, what);
  const std::vector<wire_async_object> chain = ChainOf(heap, what != Held::kMachine);
  SamplerOptions options;
  options.filter_processes = true;
  options.only_process = burner.pid;
  options.frequency_hz = setting.frequency;
  options.async_objects = true;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(burner.pid));
  RETURN_IF_ERROR((*sampler)->Start());
  const Found before = Watch(**sampler, chain, burner.pid, setting.seconds / 3);
  RETURN_IF_ERROR((*sampler)->SetAsyncLayout(burner.pid, Layout()));
  (*sampler)->Drain([](std::span<const std::byte>) {});
  const Found told = Watch(**sampler, chain, burner.pid, setting.seconds / 3);
  (*sampler)->ForgetAsyncLayout(burner.pid);
  (*sampler)->Drain([](std::span<const std::byte>) {});
  const Found after = Watch(**sampler, chain, burner.pid, setting.seconds / 3);
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

}  // namespace

absl::Status WhoAwaitsIsCopied(ScenarioSetting& setting) {
  const Heap* const heap = MakeHeap();
  if (heap == nullptr) return absl::InternalError("no memory for the objects");
  RETURN_IF_ERROR(IsCopied(setting, *heap, Held::kMachine));
  RETURN_IF_ERROR(IsCopied(setting, *heap, Held::kRuntimeAsync));
  return IsCopied(setting, *heap, Held::kNestedDispatcher);
}

}  // namespace clrsampler::test_support
