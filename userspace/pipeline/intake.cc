#include "pipeline/intake.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "pipeline/process_events.h"
#include "runtime_events/hook_part.h"
#include "unwind/raw_stack.h"

namespace clrsampler {
namespace {

// Events of runtimes are taken only while fewer items wait: 20 MB of events, some 200 MB with stacks of 4 KiB.
constexpr size_t kMaxQueued = 50'000;

// The weight of a stack in events: WEIGHT_OF_STACK of bpf/runtime_hook.bpf.h.
constexpr uint32_t kWeightOfStack = 8;
// The weight of a compilation: the name of the method and its place are read from the runtime's memory.
constexpr uint32_t kWeightOfCompilation = 5;

uint32_t WeightOf(const wire_compiled&, const RuntimeWatch&) { return kWeightOfCompilation; }
// The end of a pause is free where all else of it was taken. There are no more of these than events that were paid for.
uint32_t WeightOf(const wire_runtime_event& event, const RuntimeWatch& hooks) {
  return event.hook == WIRE_HOOK_RESTART && hooks.LacksOnlyItsEnd(event.tgid) ? 0 : 1;
}
uint32_t WeightOf(const wire_allocation&, const RuntimeWatch&) { return 1; }
uint32_t WeightOf(const wire_exception&, const RuntimeWatch&) { return 1; }

HookPart PartOf(const wire_compiled&) { return HookPart::kCompilations; }
HookPart PartOf(const wire_runtime_event& event) { return clrsampler::PartOf(event.hook); }
HookPart PartOf(const wire_exception&) { return HookPart::kExceptions; }

}  // namespace

// Side-band events first: a process that a sample names is announced before the sample is looked at.
void Intake::Drain() {
  main_loop_.Check();
  ring_fill_ = std::max(ring_fill_, parts_.events.fill());
  parts_.events.Drain([this](const SideBandEvent& event) { TakeEvent(event); },
                      [this](std::span<const std::byte> record) { TakeRecord(record); });
}

void Intake::TakeEvent(SideBandEvent event) {
  if (event.kind == SideBandKind::kLost) {
    constexpr char kReadAgain[] = "; processes are read again, and their samples from before have no names";
    if (event.lost > 0) {
      parts_.notices.Add("side_band_lost", "", absl::StrCat("process events were lost", kReadAgain),
                         "fewer short-lived processes at a time, or more CPU time for clrsampler");
    } else {
      parts_.notices.Add(
          "side_band_lost", absl::StrCat(event.cpu),
          absl::StrCat("CPU ", event.cpu, " came online, or came back, and its first process events were missed",
                       kReadAgain));
    }
    const MonotonicTime time = event.time;
    queue_.Push(time, HeldItem(std::move(event)));
    return;
  }
  if (event.pid == 0)
    return;  // outside our pid namespace; taken together they would be one process, which they are not
  if (!parts_.targets.Concerns(event)) return;
  ++news_;
  if (event.kind == SideBandKind::kComm && event.exec) parts_.table.AnnounceExec(event.pid, event.time);
  if (event.kind == SideBandKind::kMmap) parts_.table.AnnounceMapping(event.pid, MappingOf(event), event.time);
  if (parts_.hooks != nullptr) NoteThread(event);
  const MonotonicTime time = event.time;
  queue_.Push(time, HeldItem(std::move(event)));
}

void Intake::NoteThread(const SideBandEvent& event) {
  const bool begins = event.kind == SideBandKind::kFork && event.pid == event.parent_pid;
  if (!begins && event.kind != SideBandKind::kExit) return;
  const Process* const process = parts_.table.Find(event.pid);
  if (process != nullptr) parts_.hooks->NoteThread(process->key, event.tid, !begins);
}

void Intake::TakeRecord(std::span<const std::byte> record) {
  wire_header header;
  if (record.size() < sizeof header) return Lose("damaged_record");
  std::memcpy(&header, record.data(), sizeof header);
  if (header.kind == WIRE_RUNTIME_EVENT) return TakeRuntimeEvent<wire_runtime_event>(record);
  if (header.kind == WIRE_COMPILED) return TakeRuntimeEvent<wire_compiled>(record);
  if (header.kind == WIRE_ALLOCATION) return TakeRuntimeEvent<wire_allocation>(record);
  if (header.kind == WIRE_EXCEPTION) return TakeRuntimeEvent<wire_exception>(record);
  if (header.kind == WIRE_WAIT) return TakeWait(record);
  if (header.kind == WIRE_THREAD) return TakeThread(record);
  if (header.kind == WIRE_WAIT_STACK || header.kind == WIRE_WAKER_STACK || header.kind == WIRE_COMPILED_STACK ||
      header.kind == WIRE_ALLOCATION_STACK || header.kind == WIRE_EXCEPTION_STACK || header.kind == WIRE_THREAD_STACK) {
    return TakeHookStack(record);
  }
  if (header.kind != WIRE_CPU_SAMPLE) return;
  ++parts_.account.samples_taken;
  parts_.account.sample_bytes += record.size();
  wire_cpu_sample sample;
  if (record.size() < sizeof sample) return Lose("damaged_record");
  std::memcpy(&sample, record.data(), sizeof sample);
  if (kept_ == SamplesKept::kNone ||
      (kept_ == SamplesKept::kPossiblyBlamed && !parts_.hooks->MayBeBlamed(sample.tgid))) {
    ++parts_.account.samples_set_aside;
    return;
  }
  // Waiting items are the agent's memory, and the host chooses how many come.
  if (queued_bytes_ >= max_queued_bytes_) {
    if (2 * waiting_sample_bytes_ >= queued_bytes_) ++samples_dropped_;
    return Lose("queue_full");
  }
  TakeStack(record);
}

void Intake::TakeWait(std::span<const std::byte> record) {
  wire_wait wait;
  if (record.size() < sizeof wait) return Lose("damaged_record");
  std::memcpy(&wait, record.data(), sizeof wait);
  // Looks of our own are no events of others. They have the sums of all threads, and are as many as there are threads.
  const bool of_look = (wait.flags & WIRE_WAIT_OPEN) != 0;
  // A thread's last record has its sums. The next record of a living one has what this one lacks.
  const bool is_last = (wait.flags & WIRE_WAIT_THREAD_ENDED) != 0;
  uint64_t& dropped = wait_records_dropped_;
  if (!of_look && !is_last && !HasRoomForHookEvent({wait.header.time_ns}, 1, dropped, dropped)) return;
  parts_.table.FindOrScan(wait.tgid, wait.process_start_ns);
  queue_.Push({wait.header.time_ns}, HeldItem(wait));
}

void Intake::TakeThread(std::span<const std::byte> record) {
  wire_thread thread;
  if (record.size() < sizeof thread) return Lose("damaged_record");
  std::memcpy(&thread, record.data(), sizeof thread);
  if (HasRoomForHookEvent({thread.header.time_ns}, 1)) queue_.Push({thread.header.time_ns}, HeldItem(thread));
}

void Intake::TakeHookStack(std::span<const std::byte> record) {
  wire_cpu_sample sample;
  if (record.size() < sizeof sample) return Lose("damaged_record");
  std::memcpy(&sample, record.data(), sizeof sample);
  const bool of_wait = sample.header.kind == WIRE_WAIT_STACK || sample.header.kind == WIRE_WAKER_STACK;
  // A look is bounded already, and the stack of a thread that does not move comes once.
  if ((sample.flags & WIRE_SAMPLE_LOOK) != 0) return TakeStack(record);
  uint64_t& dropped = of_wait ? wait_stacks_dropped_ : runtime_events_dropped_;
  uint64_t& limited = of_wait ? wait_stacks_dropped_ : runtime_events_limited_;
  if (HasRoomForHookEvent({sample.header.time_ns}, kWeightOfStack, dropped, limited)) TakeStack(record);
}

void Intake::TakeStack(std::span<const std::byte> record) {
  wire_cpu_sample sample;
  if (record.size() < sizeof sample) return Lose("damaged_record");
  std::memcpy(&sample, record.data(), sizeof sample);
  std::unique_ptr<HeldSample> held;
  if (spare_.empty()) {
    held = std::make_unique<HeldSample>();
  } else {
    held = std::move(spare_.back());
    spare_.pop_back();
  }
  std::vector<uint64_t>& bytes = held->record;
  bytes.resize((record.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  std::memcpy(bytes.data(), record.data(), record.size());
  if ((sample.flags >> WIRE_SAMPLE_RETURNS_SHIFT & WIRE_SAMPLE_RETURNS_MASK) != 0) {
    const Process& process = parts_.table.FindOrScan(sample.tgid, sample.process_start_ns);
    if (parts_.unwinder.machine() == ElfMachine::kArm64) {
      RestoreLinkRegisters(bytes, [&](uint64_t address) { return IsInTrampoline(process, address); });
    } else {
      const bool is_known = KnowsTrampoline(process);
      RestoreReturnAddresses(bytes, IsInTrampoline(process, sample.ip),
                             [&](uint64_t address) { return !is_known || IsInTrampoline(process, address); });
    }
    std::memcpy(&sample, bytes.data(), sizeof sample);
  }
  record = std::as_bytes(std::span(bytes)).first(std::min<size_t>(record.size(), sample.header.size));
  absl::StatusOr<RawStack> raw = RawStack::Parse(record);
  if (!raw.ok()) return Lose("damaged_record");
  held->raw = *raw;
  held->early.version.reset();
  // A process that is not known yet is read now: in a moment it may be gone.
  if ((sample.flags & (WIRE_SAMPLE_KTHREAD | WIRE_SAMPLE_OUTSIDE)) == 0) {
    Process& process = parts_.table.FindOrScan(sample.tgid, sample.process_start_ns);
    parts_.unwinder.Observe(process, *raw, held->early);
    if (parts_.async != nullptr) parts_.async->Observe(process, *raw);
    if (sample.header.kind == WIRE_CPU_SAMPLE) parts_.threads.Observe(process, {sample.header.time_ns});
    parts_.targets.Sampled(sample.tgid);
  }
  held->of_clock = sample.header.kind == WIRE_CPU_SAMPLE;
  if (held->of_clock) waiting_sample_bytes_ += BytesOf(*held);
  queued_bytes_ += BytesOf(*held);
  queue_.Push({sample.header.time_ns}, HeldItem(std::move(held)));
}

template <typename Event>
constexpr size_t SmallestOf() {
  return std::is_same_v<Event, wire_compiled> ? WIRE_COMPILED_WITHOUT_NAME : sizeof(Event);
}

bool Intake::HasRoomForHookEvent(MonotonicTime time, uint32_t weight, uint64_t& dropped, uint64_t& limited) {
  if (queue_.size() >= kMaxQueued || queued_bytes_ >= max_queued_bytes_) {
    ++dropped;
    return false;
  }
  if (!hook_events_.Take(time, weight)) {
    ++limited;
    return false;
  }
  return true;
}

template <typename Event>
void Intake::TakeRuntimeEvent(std::span<const std::byte> record) {
  Event event{};
  if (record.size() < SmallestOf<Event>()) return Lose("damaged_record");
  std::memcpy(&event, record.data(), std::min(record.size(), sizeof event));
  if (parts_.hooks == nullptr) return;
  // The target chooses how often a runtime is hit, and each hit may cost a look at its memory.
  if (!HasRoomForHookEvent({event.header.time_ns}, WeightOf(event, *parts_.hooks))) {
    // Sums of allocations go on with the next record, and nothing is under way in a process that is not known.
    if constexpr (!std::is_same_v<Event, wire_allocation>) {
      const Process* const process = parts_.table.Find(event.tgid);
      if (process != nullptr) parts_.hooks->NoteLeftOut(*process, PartOf(event), {event.header.time_ns});
    }
    return;
  }
  Process& process = parts_.table.FindOrScan(event.tgid, event.process_start_ns);
  if constexpr (std::is_same_v<Event, wire_compiled>) {
    ++news_;
    parts_.memory.NoteCompiled(process, event.entry, event.method, {event.header.time_ns});
  }
  std::optional<RuntimeItem> item = parts_.hooks->Arrived(process, event);
  if (item) queue_.Push({event.header.time_ns}, HeldItem(*item));
}

void Intake::Lose(absl::string_view reason) { ++parts_.account.lost[std::string(reason)]; }

}  // namespace clrsampler
