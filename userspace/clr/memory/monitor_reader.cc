#include "clr/memory/monitor_reader.h"

#include <algorithm>
#include <array>
#include <span>

namespace clrsampler {
namespace {

// Words of a stack are followed one by one, and most lead nowhere.
constexpr int kMaxListReads = 400'000;

// DebugBlockingItem has the AwareLock, the AppDomain, the kind of wait, its timeout and the next item.
constexpr uint32_t kItemBytes = 24, kItemKind = 16, kItemTimeout = 20;
constexpr uint32_t kEnters = 0;  // the other kind waits for a pulse
constexpr uint32_t kNoTimeout = UINT32_MAX;

// SyncTableEntry: the sync block, and the object; an entry that is free has its lowest bit set.
constexpr uint64_t kEntryBytes = 16, kEntryObject = 8, kEntryFree = 1;
// Before an object, at -4. BIT_SBLK_IS_HASH_OR_SYNCBLKINDEX without BIT_SBLK_IS_HASHCODE, with an index.
constexpr uint32_t kHeaderBefore = 4, kHeaderKindMask = 0x0C00'0000, kHeaderIsIndex = 0x0800'0000;
constexpr uint32_t kIndexMask = 0x03FF'FFFF;

constexpr uint32_t kLocked = 1;                     // of the state of an AwareLock, and of a Lock
constexpr uint64_t kUserSpace = uint64_t{1} << 48;  // of arm64, which has more than x86-64

bool MayPoint(uint64_t word) { return word >= 4096 && word < kUserSpace && word % 8 == 0; }

}  // namespace

void MonitorReader::Refresh() {
  main_loop_.Check();
  MemoryProbe probe(runtime_.memory(), kMaxListReads, size_t{64} << 20);
  threads_.clear();
  for (const RuntimeThread& thread : ReadThreads(probe, runtime_)) threads_.emplace(thread.os_id, thread);
}

std::optional<LockWait> MonitorReader::WaitOf(uint32_t os_tid, const WaitFrames& frames) {
  main_loop_.Check();
  const auto thread = threads_.find(os_tid);
  if (thread == threads_.end()) return std::nullopt;
  MemoryProbe probe(runtime_.memory());
  if (!StillIs(probe, runtime_, thread->second)) return std::nullopt;
  if (std::optional<LockWait> wait = NativeWait(probe, thread->second)) return wait;
  if (frames.inner.begin == frames.inner.end) return std::nullopt;
  MemoryProbe own(runtime_.memory(), kMaxListReads);
  return ManagedWait(own, thread->second, frames);
}

uint64_t MonitorReader::SyncTable(MemoryProbe& probe) {
  return runtime_.variables().sync_table == 0 ? 0 : probe.Pointer(runtime_.variables().sync_table);
}

// The table and the header of the object have to agree.
uint64_t MonitorReader::ObjectOf(MemoryProbe& probe, uint64_t sync_block, uint32_t index) {
  const uint64_t table = SyncTable(probe);
  if (table == 0 || index == 0) return 0;
  const auto entry = probe.Block<kEntryBytes>(table + kEntryBytes * index);
  const uint64_t object = FieldOf<uint64_t>(entry, kEntryObject);
  if (!probe.ok() || FieldOf<uint64_t>(entry, 0) != sync_block || object == 0 || (object & kEntryFree) != 0) return 0;
  const uint32_t header = probe.Value<uint32_t>(object - kHeaderBefore);
  return probe.ok() && (header & kHeaderKindMask) == kHeaderIsIndex && (header & kIndexMask) == index ? object : 0;
}

std::optional<LockWait> MonitorReader::NativeWait(MemoryProbe& probe, const RuntimeThread& thread) {
  const RuntimeLayout& layout = runtime_.layout();
  if (!layout.thread_list.blocking_item || layout.sync_block.lock) return std::nullopt;
  const uint64_t item = probe.Pointer(thread.address + *layout.thread_list.blocking_item);
  if (!MayPoint(item)) return std::nullopt;
  const auto fields = probe.Block<kItemBytes>(item);
  const uint64_t lock = FieldOf<uint64_t>(fields, 0);
  if (!probe.ok() || FieldOf<uint32_t>(fields, kItemKind) != kEnters || !MayPoint(lock)) return std::nullopt;
  const RuntimeLayout::SyncBlock& at = layout.sync_block;
  const uint32_t index = probe.Value<uint32_t>(lock + at.table_index) & kIndexMask;
  const uint64_t object = ObjectOf(probe, lock, index);
  if (object == 0) return std::nullopt;
  LockWait wait;
  wait.lock = lock;
  wait.limited = FieldOf<uint32_t>(fields, kItemTimeout) != kNoTimeout;
  if ((probe.Value<uint32_t>(lock + at.state) & kLocked) != 0) {
    wait.held = true;
    wait.owner_tid = static_cast<uint32_t>(probe.Pointer(lock + at.owner_os_id));
    wait.entered = probe.Value<uint32_t>(lock + at.recursion);
  }
  if (!probe.ok() || wait.owner_tid == thread.os_id) return std::nullopt;
  if (!threads_.contains(wait.owner_tid)) wait.owner_tid = 0;
  Describe(object, wait);
  return wait;
}

std::optional<MonitorReader::LockFields> MonitorReader::FieldsOfLock(MemoryProbe& probe) {
  LockFields found;
  found.type = fields_.Type(probe, "System.Threading.Lock");
  const auto state = fields_.Offset(probe, found.type, "_state");
  const auto owner = fields_.Offset(probe, found.type, "_owningThreadId");
  const auto recursion = fields_.Offset(probe, found.type, "_recursionCount");
  if (!state || !owner || !recursion) return std::nullopt;
  found.state = kObjectFields + *state;
  found.owner = kObjectFields + *owner;
  found.recursion = kObjectFields + *recursion;
  return found;
}

std::vector<uint64_t> MonitorReader::Words(AddressRange range) {
  if (range.end <= range.begin || range.end - range.begin > kMaxFrameBytes) return {};
  std::vector<uint64_t> words((range.end - range.begin) / sizeof(uint64_t));
  if (!runtime_.memory().Read(range.begin, std::as_writable_bytes(std::span(words)))) return {};
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::erase_if(words, [](uint64_t word) { return !MayPoint(word); });
  return words;
}

// 0: no object with a monitor of that kind.
uint64_t MonitorReader::LockOfObject(MemoryProbe& probe, uint64_t object) {
  const std::optional<uint32_t> header = runtime_.memory().Value<uint32_t>(object - kHeaderBefore);
  if (!header || (*header & kHeaderKindMask) != kHeaderIsIndex) return 0;
  const uint32_t index = *header & kIndexMask;
  MemoryProbe own(runtime_.memory());
  const uint64_t sync_block = own.Pointer(SyncTable(probe) + kEntryBytes * index);
  if (sync_block == 0 || ObjectOf(own, sync_block, index) != object) return 0;
  const uint64_t handle = own.Pointer(sync_block + *runtime_.layout().sync_block.lock);
  const uint64_t lock = handle == 0 ? 0 : own.Pointer(handle);
  return own.ok() ? lock : 0;
}

std::optional<LockWait> MonitorReader::ManagedWait(MemoryProbe& probe, const RuntimeThread& thread,
                                                   const WaitFrames& frames) {
  const std::optional<LockFields> at = FieldsOfLock(probe);
  if (!at) return std::nullopt;
  const auto id_of = [this](const RuntimeThread& one) {
    return runtime_.layout().thread_list.locks_have_os_ids ? one.os_id : one.managed_id;
  };
  LockWait wait;
  wait.limited = frames.limited;
  uint32_t owner = 0;
  for (const uint64_t word : Words(frames.inner)) {
    if (probe.PointerIfReadable(word) != at->type) continue;
    const uint32_t holder = probe.Value<uint32_t>(word + at->owner);
    const bool locked = (probe.Value<uint32_t>(word + at->state) & kLocked) != 0;
    if (!locked || holder == 0 || holder == id_of(thread)) continue;
    if (wait.lock != 0) return std::nullopt;  // not sure which one
    wait.lock = word;
    wait.held = true;
    owner = holder;
    wait.entered = probe.Value<uint32_t>(word + at->recursion) + 1;
  }
  if (wait.lock == 0 || !probe.ok()) return std::nullopt;
  for (const auto& [os_id, other] : threads_) {
    if (id_of(other) == owner) wait.owner_tid = os_id;
  }
  if (!frames.monitor) {
    Describe(wait.lock, wait);
  } else if (runtime_.layout().sync_block.lock) {
    for (const uint64_t word : Words(frames.outer)) {
      if (LockOfObject(probe, word) == wait.lock) Describe(word, wait);
    }
  }
  return wait;
}

void MonitorReader::Describe(uint64_t object, LockWait& wait) {
  wait.object = object;
  const std::optional<uint64_t> type = runtime_.memory().Value<uint64_t>(object);
  if (type) wait.type = runtime_.TypeName(*type & ~uint64_t{7}).value_or("");
}

}  // namespace clrsampler
