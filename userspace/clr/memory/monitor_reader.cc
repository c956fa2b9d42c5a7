#include "clr/memory/monitor_reader.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// Words of a stack are followed one by one, and most lead nowhere.
constexpr int kMaxListReads = 400'000;
constexpr int kListTries = 3;
constexpr size_t kMaxLookedUp = 16;  // each reads the list anew

// DebugBlockingItem has the AwareLock, the AppDomain, the kind of wait, its timeout and the next item.
constexpr uint32_t kMaxLockFieldBytes = 128;  // of a Lock, up to the last field that is read
constexpr uint32_t kLockBytes = 32;           // of an AwareLock, up to the end of its index
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

absl::Status MonitorReader::Refresh() {
  main_loop_.Check();
  threads_.clear();
  looked_up_.clear();
  if (!runtime_.layout().thread_list.known) {
    return absl::UnimplementedError("it is not known where this runtime lists its threads");
  }
  if (runtime_.variables().thread_store == 0) {
    return absl::UnimplementedError("the runtime does not say where it lists its threads");
  }
  return ReadList();
}

// A thread that begins or ends may cut the list short.
absl::Status MonitorReader::ReadList() {
  absl::Status status;
  for (int i = 0; i < kListTries; ++i) {
    MemoryProbe probe(runtime_.memory(), kMaxListReads, size_t{64} << 20);
    absl::flat_hash_map<uint32_t, RuntimeThread> threads;
    for (const RuntimeThread& thread : ReadThreads(probe, runtime_)) threads.emplace(thread.os_id, thread);
    if (probe.ok() && threads.empty()) probe.Fail(ProbeFailure::kContradiction, "it has none");
    const bool whole = probe.ok();
    if (whole || threads_.empty()) threads_ = std::move(threads);
    if (whole) return absl::OkStatus();
    status = absl::UnavailableError(absl::StrCat("the runtime's list of its threads can't be read: ", probe.detail()));
  }
  return status;
}

std::optional<LockWait> MonitorReader::WaitOf(uint32_t os_tid, const WaitFrames& frames) {
  main_loop_.Check();
  const auto found = threads_.find(os_tid);
  if (found == threads_.end()) return std::nullopt;
  const RuntimeThread thread = found->second;  // the list may be read anew
  MemoryProbe probe(runtime_.memory());
  if (!StillIs(probe, runtime_, thread)) return std::nullopt;
  if (std::optional<LockWait> wait = NativeWait(probe, thread)) return wait;
  if (frames.inner.begin == frames.inner.end) return std::nullopt;
  MemoryProbe own(runtime_.memory(), kMaxListReads);
  return ManagedWait(own, thread, frames);
}

// An owner may have begun after the list was read.
uint32_t MonitorReader::TidOf(uint32_t owner, bool is_managed_id) {
  const auto find = [&]() -> uint32_t {
    if (!is_managed_id) return threads_.contains(owner) ? owner : 0;
    for (const auto& [os_id, thread] : threads_) {
      if (thread.managed_id == owner) return os_id;
    }
    return 0;
  };
  if (const uint32_t tid = find(); tid != 0) return tid;
  if (looked_up_.size() >= kMaxLookedUp || !looked_up_.insert(owner).second || !ReadList().ok()) return 0;
  return find();
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
  // All at once: the lock may change hands between two readings.
  const auto state = probe.Block<kLockBytes>(lock);
  if (!probe.ok()) return std::nullopt;
  if ((FieldOf<uint32_t>(state, at.state) & kLocked) != 0) {
    const auto owner = static_cast<uint32_t>(FieldOf<uint64_t>(state, at.owner_os_id));
    if (owner == thread.os_id) return std::nullopt;
    wait.held = true;
    wait.changing = owner == 0;
    wait.owner_tid = owner == 0 ? 0 : TidOf(owner, /*is_managed_id=*/false);
    wait.entered = FieldOf<uint32_t>(state, at.recursion);
  }
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
  found.bytes = std::max({found.state, found.owner, found.recursion}) + uint32_t{sizeof(uint32_t)};
  if (found.bytes > kMaxLockFieldBytes) return std::nullopt;
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
  const bool has_os_ids = runtime_.layout().thread_list.locks_have_os_ids;
  const uint32_t own_id = has_os_ids ? thread.os_id : thread.managed_id;
  LockWait wait;
  wait.limited = frames.limited;
  uint32_t owner = 0;
  for (const uint64_t word : Words(frames.inner)) {
    if (probe.PointerIfReadable(word) != at->type) continue;
    std::array<std::byte, kMaxLockFieldBytes> fields{};
    probe.Read(word, std::span(fields).first(at->bytes));
    const bool locked = (FieldOf<uint32_t>(fields, at->state) & kLocked) != 0;
    const auto holder = FieldOf<uint32_t>(fields, at->owner);
    if (locked && holder == own_id) continue;
    if (wait.lock != 0) return std::nullopt;  // not sure which one
    wait.lock = word;
    wait.held = locked;
    wait.changing = locked && holder == 0;
    owner = locked ? holder : 0;
    wait.entered = locked ? FieldOf<uint32_t>(fields, at->recursion) + 1 : 0;
  }
  if (wait.lock == 0 || !probe.ok()) return std::nullopt;
  if (owner != 0) wait.owner_tid = TidOf(owner, !has_os_ids);
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
