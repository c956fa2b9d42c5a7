#include "clr/memory/transient_heaps.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

namespace clrsampler {
namespace {

// A look takes ten reads, and programs whose methods rise through the tiers map code for minutes.
constexpr uint64_t kMinPauseNs = 20'000'000;
constexpr uint64_t kMaxPauseNs = 4'000'000'000;

constexpr size_t kMaxHeaps = 4096;  // as many as the sampler watches

wire_transient_heap WireOf(const RuntimeMemory::TransientHeap& heap) {
  return {heap.range.begin, heap.range.end, heap.heap.map_base, heap.heap.nibble_map};
}

}  // namespace

std::vector<uint64_t> TransientHeaps::Poll(RuntimeMemory& runtime, const MappingTable& mappings, MonotonicTime now,
                                           const Publish& publish) {
  main_loop_.Check();
  bool at_once = missed_;
  if (const uint64_t seen = std::exchange(seen_mappings_, mappings.generation()); seen != mappings.generation()) {
    at_once |= NoteBeginnings(mappings, seen);
    mappings_changed_ = true;
  }
  if (!at_once && (!mappings_changed_ || now < next_look_)) return {};
  mappings_changed_ = missed_ = false;
  std::vector<wire_transient_heap> heaps;
  for (const RuntimeMemory::TransientHeap& heap : runtime.TransientHeaps()) heaps.push_back(WireOf(heap));
  std::ranges::sort(heaps, {}, &wire_transient_heap::begin);
  std::vector<uint64_t> fresh;
  for (const wire_transient_heap& heap : heaps) {
    if (HeapAt(heap.begin) == nullptr) fresh.push_back(heap.begin);
  }
  const bool news = PublishHeaps(runtime.layout(), std::move(heaps), publish);
  pause_ns_ = news ? kMinPauseNs : std::clamp(2 * pause_ns_, kMinPauseNs, kMaxPauseNs);
  next_look_.ns = now.ns + pause_ns_;
  return fresh;
}

bool TransientHeaps::Compiled(RuntimeMemory& runtime, uint64_t entry, const Publish& publish) {
  main_loop_.Check();
  if (HeapAt(entry) != nullptr || heaps_.size() >= kMaxHeaps) return false;
  const std::optional<RuntimeMemory::TransientHeap> heap = runtime.TransientHeapAt(entry);
  if (!heap) return false;
  std::vector<wire_transient_heap> heaps = heaps_;
  // A heap that was reported, and is not where this one is any more.
  std::erase_if(heaps, [&](const wire_transient_heap& old) {
    return old.begin < heap->range.end && heap->range.begin < old.end;
  });
  heaps.insert(std::ranges::upper_bound(heaps, heap->range.begin, {}, &wire_transient_heap::begin), WireOf(*heap));
  return PublishHeaps(runtime.layout(), std::move(heaps), publish);
}

const wire_transient_heap* TransientHeaps::HeapAt(uint64_t address) const {
  const auto next = std::ranges::upper_bound(heaps_, address, {}, &wire_transient_heap::begin);
  if (next == heaps_.begin() || std::prev(next)->end <= address) return nullptr;
  return &*std::prev(next);
}

// Whether memory for code begins where none began before. This leaves out the many changes inside a heap.
bool TransientHeaps::NoteBeginnings(const MappingTable& mappings, uint64_t seen) {
  bool fresh = false;
  if (beginnings_.size() > kMaxBeginnings) beginnings_.clear();
  mappings.ForEachSince(seen, [&](const Mapping& mapping) {
    if (mapping.kind == MappingKind::kJitMemory) fresh |= beginnings_.insert(mapping.start).second;
  });
  return fresh;
}

bool TransientHeaps::PublishHeaps(const RuntimeLayout& layout, std::vector<wire_transient_heap> heaps,
                                  const Publish& publish) {
  wire_transient_code code{};
  code.nibble_version = static_cast<uint16_t>(layout.nibble_map);
  code.function_bytes = layout.runtime_function.has_end ? WIRE_FUNCTION_WITH_END : WIRE_FUNCTION_WITHOUT_END;
  code.method_flags = static_cast<uint16_t>(layout.method_desc.flags);
  code.dynamic_name = static_cast<uint16_t>(layout.dynamic_method_name);
  if (!heaps.empty()) code.begin = heaps.front().begin;
  for (const wire_transient_heap& heap : heaps) code.end = std::max(code.end, heap.end);
  const auto same = [](const wire_transient_heap& a, const wire_transient_heap& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  };
  if (std::memcmp(&code, &code_, sizeof code) == 0 && std::ranges::equal(heaps, heaps_, same)) return false;
  code_ = code;
  heaps_ = std::move(heaps);
  if (publish) publish(code_, heaps_);
  return true;
}

}  // namespace clrsampler
