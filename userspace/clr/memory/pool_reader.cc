#include "clr/memory/pool_reader.h"

#include <algorithm>

namespace clrsampler {
namespace {

constexpr char kPool[] = "System.Threading.PortableThreadPool";
constexpr char kPoolCounts[] = "System.Threading.PortableThreadPool+CacheLineSeparated";
constexpr char kWorkQueue[] = "System.Threading.ThreadPoolWorkQueue";
constexpr char kWorkerQueues[] = "System.Threading.ThreadPoolWorkQueue+WorkStealingQueueList";
constexpr char kWorkerQueue[] = "System.Threading.ThreadPoolWorkQueue+WorkStealingQueue";
constexpr char kConcurrentQueue[] = "System.Collections.Concurrent.ConcurrentQueue`1";
constexpr char kHeadAndTail[] = "System.Collections.Concurrent.PaddedHeadAndTail";

// Each queue is followed by itself. The queues of all workers are one list.
constexpr int kReads = 4096, kReadsOfWorkers = 200'000;
constexpr uint32_t kMaxSegments = 256;  // each has twice the slots of the one before, up to a million
constexpr uint32_t kMaxWorkers = 32'767;
constexpr uint32_t kMaxSlots = 1 << 20;
// An array: its MethodTable, its length, its elements.
constexpr uint32_t kArrayLength = 8, kArrayElements = 16;

// PortableThreadPool.ThreadCounts: 16 bits each, from the lowest on.
constexpr int kWorkingShift = 0, kWorkersShift = 16, kWantedShift = 32;
uint32_t Count(uint64_t counts, int shift) { return static_cast<uint32_t>(counts >> shift & 0xFFFF); }

}  // namespace

uint32_t PoolReader::Place(MemoryProbe& probe, uint64_t method_table, absl::string_view field) {
  const std::optional<uint32_t> offset = fields_.Offset(probe, method_table, field);
  probe.Require(offset.has_value(), "a class of the thread pool has another form");
  return offset.value_or(0);
}

std::optional<PoolState> PoolReader::Read() {
  main_loop_.Check();
  MemoryProbe probe(runtime_.memory());
  const uint64_t type = fields_.Type(probe, kPool), counts_type = fields_.Type(probe, kPoolCounts);
  const uint64_t pool = fields_.StaticObject(probe, type, "ThreadPoolInstance");
  if (pool == 0 || counts_type == 0 || probe.Pointer(pool) != type) return std::nullopt;
  const uint64_t fields = pool + kObjectFields;
  PoolState state;
  state.min_workers = probe.Value<uint16_t>(fields + Place(probe, type, "_minThreads"));
  state.max_workers = probe.Value<uint16_t>(fields + Place(probe, type, "_maxThreads"));
  const uint64_t counts =
      probe.Pointer(fields + Place(probe, type, "_separated") + Place(probe, counts_type, "counts"));
  state.working = Count(counts, kWorkingShift);
  state.workers = Count(counts, kWorkersShift);
  state.wanted = Count(counts, kWantedShift);
  probe.Require(state.min_workers > 0 && state.min_workers <= state.max_workers && state.max_workers <= kMaxWorkers &&
                    state.working <= state.workers && state.workers <= kMaxWorkers,
                "a thread pool with impossible numbers");
  if (!probe.ok()) return std::nullopt;
  state.queued = Queued();
  return state;
}

uint64_t PoolReader::ObjectIn(MemoryProbe& probe, uint64_t object, absl::string_view field) {
  const uint64_t type = probe.Pointer(object);
  return probe.Pointer(object + kObjectFields + Place(probe, type, field));
}

std::optional<uint64_t> PoolReader::Queued() {
  MemoryProbe probe(runtime_.memory(), kReads);
  const uint64_t holder = fields_.Type(probe, "System.Threading.ThreadPool");
  const uint64_t work = fields_.StaticObject(probe, holder, "s_workQueue");
  if (work == 0 || !fields_.IsOf(probe, probe.Pointer(work), kWorkQueue)) return std::nullopt;
  uint64_t items = 0;
  for (const absl::string_view field : {"workItems", "highPriorityWorkItems", "lowPriorityWorkItems"}) {
    items += ItemsIn(probe, ObjectIn(probe, work, field));
  }
  // There is one for each 16 CPUs, on machines with more than 32.
  const uint64_t assigned = ObjectIn(probe, work, "_assignableWorkItemQueues");
  const uint32_t count = assigned == 0 ? 0 : probe.Value<uint32_t>(assigned + kArrayLength);
  for (uint32_t i = 0; i < count && probe.ok(); ++i) {
    items += ItemsIn(probe, probe.Pointer(assigned + kArrayElements + 8 * uint64_t{i}));
  }
  MemoryProbe workers(runtime_.memory(), kReadsOfWorkers, size_t{16} << 20);
  items += ItemsOfWorkers(workers);
  if (!probe.ok() || !workers.ok()) return std::nullopt;
  return items;
}

// Positions count on and on. A segment that takes no more items has its tail moved by twice its slots.
uint64_t PoolReader::ItemsIn(MemoryProbe& probe, uint64_t queue) {
  if (queue == 0 || !probe.ok()) return 0;
  if (!probe.Require(fields_.IsOf(probe, probe.Pointer(queue), kConcurrentQueue), "a queue of another class")) return 0;
  const uint64_t ends = fields_.Type(probe, kHeadAndTail);
  uint64_t segment = ObjectIn(probe, queue, "_head"), items = 0;
  for (uint32_t i = 0; segment != 0 && probe.ok(); ++i) {
    if (!probe.Require(i < kMaxSegments, "a queue of too many segments")) return 0;
    const uint64_t type = probe.Pointer(segment);
    const uint64_t positions = segment + kObjectFields + Place(probe, type, "_headAndTail");
    const uint32_t head = probe.Value<uint32_t>(positions + Place(probe, ends, "Head"));
    const uint32_t tail = probe.Value<uint32_t>(positions + Place(probe, ends, "Tail"));
    const uint32_t slots = probe.Value<uint32_t>(ObjectIn(probe, segment, "_slots") + kArrayLength);
    if (!probe.Require(slots > 0 && slots <= kMaxSlots, "a queue with an impossible number of slots")) return 0;
    const uint32_t apart = tail - head;
    items += apart >= 2 * slots ? std::min(apart - 2 * slots, slots) : std::min(apart, slots);
    segment = ObjectIn(probe, segment, "_nextSegment");
  }
  return probe.ok() ? items : 0;
}

// The items that a worker's own work items queue, until it or another worker takes them.
uint64_t PoolReader::ItemsOfWorkers(MemoryProbe& probe) {
  const uint64_t list = fields_.Type(probe, kWorkerQueues);
  uint64_t queues = fields_.StaticObject(probe, list, runtime_.layout().major == 8 ? "_queues" : "s_queues");
  const uint32_t count = queues == 0 ? 0 : probe.Value<uint32_t>(queues + kArrayLength);
  if (!probe.Require(queues != 0 && count <= kMaxWorkers, "no list of the workers' queues")) return 0;
  const uint64_t type = fields_.Type(probe, kWorkerQueue);
  uint64_t items = 0;
  for (uint32_t i = 0; i < count && probe.ok(); ++i) {
    const uint64_t queue = probe.Pointer(queues + kArrayElements + 8 * uint64_t{i});
    if (queue == 0) continue;
    if (!probe.Require(probe.Pointer(queue) == type, "a queue of another class")) return 0;
    const auto head = probe.Value<int32_t>(queue + kObjectFields + Place(probe, type, "m_headIndex"));
    const auto tail = probe.Value<int32_t>(queue + kObjectFields + Place(probe, type, "m_tailIndex"));
    items += static_cast<uint32_t>(std::max(0, tail - head));
  }
  return probe.ok() ? items : 0;
}

}  // namespace clrsampler
