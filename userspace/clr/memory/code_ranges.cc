#include "clr/memory/code_ranges.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "clr/runtime_generations.h"

namespace clrsampler {
namespace {

constexpr int kLevels = 5;
constexpr int kLowestShift = 17;  // the lowest level's entries stand for 128 KiB each
constexpr uint64_t kEntries = 256;
// Pointers of the map carry a flag in their lowest bit: something collectible is behind them.
constexpr uint64_t kTag = 1;

constexpr int kMaxFragments = 64;
constexpr uint32_t kFlagCollectible = 1, kFlagCodeHeap = 2, kFlagRangeList = 4;

// A header pointer this small is a stub kind: src/coreclr/vm/codeman.h, STUB_CODE_BLOCK_LAST.
constexpr uint64_t kLastStubKind = 0xF;

constexpr uint32_t kMaxUnwindInfos = 4096;
// The lowest two bits of the unwind data in a RUNTIME_FUNCTION without an end ("ARM64 exception handling", Microsoft's
// docs). They are 0 where the data is an address, and the first word there begins with the length. Else both lie in the
// word itself.
constexpr uint32_t kPackedUnwindMask = 3;
constexpr uint32_t kInstructionBytes = 4;
constexpr uint64_t kMaxHeapBytes = uint64_t{1} << 32;

}  // namespace

std::optional<CodeSection> CodeRanges::FindSection(MemoryProbe& probe, uint64_t address) {
  main_loop_.Check();
  if (auto next = permanent_by_begin_.upper_bound(address); next != permanent_by_begin_.begin()) {
    if (const CodeSection& section = std::prev(next)->second; section.range.contains(address)) return section;
  }
  uint64_t next = FragmentsAt(probe, address);
  for (int i = 0; next != 0 && i < kMaxFragments; ++i) {
    const auto fragment = probe.Block<RuntimeLayout::RangeFragment::kBytes>(next);
    const uint64_t begin = FieldOf<uint64_t>(fragment, layout_.range_fragment.begin);
    const uint64_t end = FieldOf<uint64_t>(fragment, layout_.range_fragment.end);
    if (!probe.ok() || !probe.Require(begin < end, "a range fragment ends before it begins")) return std::nullopt;
    if (begin <= address && address < end) {
      const uint64_t at = FieldOf<uint64_t>(fragment, layout_.range_fragment.section);
      std::optional<CodeSection> section = ReadSection(probe, at);
      if (section && !probe.Require(section->range.contains(address), "a range section does not hold its fragment")) {
        permanent_.erase(at);
        return std::nullopt;
      }
      if (section && !section->collectible && permanent_by_begin_.size() < kMaxSections) {
        permanent_by_begin_.insert_or_assign(section->range.begin, *section);
      }
      return section;
    }
    next = FieldOf<uint64_t>(fragment, layout_.range_fragment.next) & ~kTag;
  }
  if (next != 0) probe.Fail(ProbeFailure::kContradiction, "range fragments in a circle");
  return std::nullopt;
}

// The first of the fragments around an address. 0: there is none, or it can't be read.
uint64_t CodeRanges::FragmentsAt(MemoryProbe& probe, uint64_t address) {
  if (ways_.size() >= kMaxSections) ways_.clear();
  const uint64_t place = address >> kLowestShift;
  Way& way = ways_.try_emplace(place, Way{map_, kLevels - 1}).first->second;
  for (;;) {
    const uint64_t index = place >> (8 * way.level) & (kEntries - 1);
    const uint64_t next = probe.Pointer(way.table + 8 * index) & ~kTag;
    if (!probe.ok()) ways_.erase(place);
    if (next == 0 || way.level == 0) return next;
    way = {next, way.level - 1};
  }
}

// The class of an object does not change, and the managers live as long as the runtime.
bool CodeRanges::IsOfRuntime(MemoryProbe& probe, uint64_t jit_manager) {
  if (std::find(jit_managers_.begin(), jit_managers_.end(), jit_manager) != jit_managers_.end()) return true;
  if (!runtime_.contains(probe.Pointer(jit_manager)) || !probe.ok()) return false;
  constexpr size_t kMaxManagers = 8;
  if (jit_managers_.size() < kMaxManagers) jit_managers_.push_back(jit_manager);
  return true;
}

std::optional<CodeSection> CodeRanges::ReadSection(MemoryProbe& probe, uint64_t address) {
  if (const auto known = permanent_.find(address); known != permanent_.end()) return known->second;
  const auto& at = layout_.range_section;
  const auto block = probe.Block<RuntimeLayout::RangeSection::kBytes>(address);
  CodeSection section;
  section.range = {FieldOf<uint64_t>(block, at.begin), FieldOf<uint64_t>(block, at.end)};
  const uint64_t jit_manager = FieldOf<uint64_t>(block, at.jit_manager);
  probe.Require(section.range.begin < section.range.end, "a range section ends before it begins");
  probe.Require(IsOfRuntime(probe, jit_manager), "a range section's manager is of no class of the runtime");
  if (!probe.ok()) return std::nullopt;
  const uint32_t flags = FieldOf<uint32_t>(block, at.flags);
  section.collectible = (flags & kFlagCollectible) != 0;
  section.r2r_module = FieldOf<uint64_t>(block, at.r2r_module);
  if ((flags & kFlagCodeHeap) != 0) {
    section.kind = CodeSectionKind::kCodeHeap;
    section.heap_list = FieldOf<uint64_t>(block, at.heap_list);
  } else if ((flags & kFlagRangeList) != 0) {
    section.kind = CodeSectionKind::kStubs;
    section.stub_kind = probe.Value<uint32_t>(FieldOf<uint64_t>(block, at.range_list) + layout_.range_list_kind);
  } else if (section.r2r_module != 0) {
    section.kind = CodeSectionKind::kPrecompiled;
  } else {
    probe.Fail(ProbeFailure::kUnsupported, "a range section of an unknown kind");
  }
  if (!probe.ok()) return std::nullopt;
  if (!section.collectible && permanent_.size() < kMaxSections) permanent_.emplace(address, section);
  return section;
}

std::optional<CodeHeap> CodeRanges::HeapOf(MemoryProbe& probe, const CodeSection& section) const {
  const auto& at = layout_.code_heap;
  const auto block = probe.Block<RuntimeLayout::CodeHeap::kBytes>(section.heap_list);
  const CodeHeap heap{{FieldOf<uint64_t>(block, at.start), FieldOf<uint64_t>(block, at.end)},
                      FieldOf<uint64_t>(block, at.map_base),
                      FieldOf<uint64_t>(block, at.header_map)};
  if (!probe.ok() || !probe.Require(heap.map_base <= heap.used.begin && heap.used.begin <= heap.used.end &&
                                        heap.used.end - heap.map_base <= kMaxHeapBytes,
                                    "a code heap outside its map")) {
    return std::nullopt;
  }
  return heap;
}

HeapOwner CodeRanges::OwnerOf(MemoryProbe& probe, const CodeSection& section) {
  main_loop_.Check();
  if (permanent_owner_ == 0) {
    const auto heap =
        std::ranges::find(permanent_, CodeSectionKind::kCodeHeap, [](const auto& entry) { return entry.second.kind; });
    if (heap != permanent_.end()) permanent_owner_ = LoaderAllocatorNumber(probe, heap->second);
  }
  const uint64_t number = LoaderAllocatorNumber(probe, section);
  const bool believed = permanent_owner_ != 0 && number > permanent_owner_;
  return {section.range, believed ? number : 0};
}

// 0: nothing can be read or believed.
uint64_t CodeRanges::LoaderAllocatorNumber(MemoryProbe& probe, const CodeSection& heap) const {
  constexpr uint64_t kMaxNumber = uint64_t{1} << 40;
  if (layout_.loader_allocator_number == 0) return 0;
  const uint64_t allocator = probe.PointerIfReadable(heap.heap_list + layout_.code_heap.loader_allocator);
  if (allocator == 0 || !runtime_.contains(probe.PointerIfReadable(allocator))) return 0;
  const uint64_t number = probe.PointerIfReadable(allocator + layout_.loader_allocator_number);
  return number < kMaxNumber ? number : 0;
}

// A permanent heap only grows, and its map lies at a fixed place.
std::optional<CodeHeap> CodeRanges::HeapAround(MemoryProbe& probe, const CodeSection& section, uint64_t address) {
  if (section.collectible) return HeapOf(probe, section);
  if (const auto known = heaps_.find(section.heap_list); known != heaps_.end() && known->second.used.contains(address))
    return known->second;
  const std::optional<CodeHeap> heap = HeapOf(probe, section);
  if (heap && heaps_.size() < kMaxSections) heaps_.insert_or_assign(section.heap_list, *heap);
  return heap;
}

std::optional<MethodCode> CodeRanges::FindMethod(MemoryProbe& probe, const CodeSection& section, uint64_t address) {
  main_loop_.Check();
  const std::optional<CodeHeap> heap = HeapAround(probe, section, address);
  if (!heap || !heap->used.contains(address)) return std::nullopt;
  const AddressRange used = heap->used;
  const uint64_t base = heap->map_base, map = heap->nibble_map;
  // Where methods are large, the words before this one are wanted next. So they are read in blocks.
  constexpr uint64_t kBlockWords = 16;
  std::array<uint32_t, kBlockWords> words{};
  uint64_t first = UINT64_MAX;
  const std::optional<uint64_t> offset =
      FindMethodStart(layout_.nibble_map, address - base, [&](uint64_t index) -> std::optional<uint32_t> {
        if (first == UINT64_MAX || index < first || index >= first + kBlockWords) {
          first = index >= kBlockWords - 1 ? index - (kBlockWords - 1) : 0;
          const uint64_t count = std::min(kBlockWords, index - first + 1);
          words.fill(0);
          if (!probe.Read(map + 4 * first, std::as_writable_bytes(std::span(words)).first(4 * count))) {
            return std::nullopt;
          }
        }
        return words[index - first];
      });
  if (!offset || !probe.ok()) return std::nullopt;
  const uint64_t start = base + *offset;
  if (!probe.Require(used.contains(start) && start <= address, "a method begins outside its heap")) {
    return std::nullopt;
  }
  std::optional<MethodCode> code = MethodAt(probe, section, start);
  if (code && code->stub_kind == 0 && !code->range.contains(address)) return std::nullopt;
  return code;
}

// Addresses inside of a method's records count from `base`.
uint32_t CodeRanges::LengthByUnwindData(MemoryProbe& probe, uint64_t base, uint32_t unwind_data) {
  if ((unwind_data & kPackedUnwindMask) != 0) return (unwind_data >> 2 & 0x7ff) * kInstructionBytes;
  return (probe.Value<uint32_t>(base + unwind_data) & 0x3ffff) * kInstructionBytes;
}

std::optional<MethodCode> CodeRanges::MethodAt(MemoryProbe& probe, const CodeSection& section, uint64_t start) const {
  MethodCode code;
  code.range.begin = start;
  code.header = probe.Pointer(start - 8);
  if (code.header <= kLastStubKind) {
    if (!probe.Require(code.header != 0, "code without a header")) return std::nullopt;
    code.stub_kind = static_cast<uint32_t>(code.header);
    code.range.end = section.range.end;  // not known: stubs have no unwind data
    return code;
  }
  code.identity = probe.Block<48>(code.header);
  code.method_desc = FieldOf<uint64_t>(code.identity, layout_.code_header.method_desc);
  const uint32_t unwinds = FieldOf<uint32_t>(code.identity, layout_.code_header.unwind_count);
  if (!probe.ok() ||
      !probe.Require(unwinds != 0 && unwinds < kMaxUnwindInfos, "an impossible number of unwind infos")) {
    return std::nullopt;
  }
  // The funclets follow the body; each has an unwind info of its own.
  const uint64_t table = code.header + layout_.code_header.unwinds;
  const auto& function = layout_.runtime_function;
  std::vector<std::byte> infos(unwinds * function.bytes);
  probe.Read(table, infos);
  const auto word = [&](uint32_t index, uint32_t at) {
    uint32_t value = 0;
    std::memcpy(&value, infos.data() + index * function.bytes + at, sizeof value);
    return value;
  };
  const uint32_t begin = word(0, 0);
  uint32_t end = 0;
  for (uint32_t i = 0; i < unwinds && probe.ok(); ++i) {
    end = std::max(end, function.has_end
                            ? word(i, 4)
                            : word(i, 0) + LengthByUnwindData(probe, start - begin, word(i, function.unwind_data)));
  }
  probe.Require(begin < end, "a method ends before it begins");
  code.range.end = start + (end - begin);
  probe.Require(code.range.end <= section.range.end, "a method ends behind its heap");
  if (probe.Pointer(start - 8) != code.header) probe.Fail(ProbeFailure::kChanged, "the method was replaced");
  if (!probe.ok()) return std::nullopt;
  return code;
}

std::vector<CodeSection> CodeRanges::Sections(MemoryProbe& probe) {
  main_loop_.Check();
  Listing listing;
  CollectLevel(probe, map_, kLevels - 1, listing);
  std::vector<uint64_t>& addresses = listing.sections;
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  std::vector<CodeSection> sections;
  for (const uint64_t address : addresses) {
    if (const std::optional<CodeSection> section = ReadSection(probe, address)) sections.push_back(*section);
  }
  for (auto& [slot, chain] : listing.fresh) Remember(slot, std::move(chain));
  return sections;
}

void CodeRanges::CollectLevel(MemoryProbe& probe, uint64_t table, int level, Listing& listing) const {
  const auto entries = probe.Block<kEntries * 8>(table);
  for (uint64_t i = 0; i < kEntries && probe.ok() && listing.sections.size() < kMaxSections; ++i) {
    const uint64_t next = FieldOf<uint64_t>(entries, static_cast<uint32_t>(8 * i)) & ~kTag;
    if (next == 0) continue;
    if (level > 0) {
      CollectLevel(probe, next, level - 1, listing);
    } else {
      CollectFragments(probe, table + 8 * i, next, listing);
    }
  }
}

void CodeRanges::CollectFragments(MemoryProbe& probe, uint64_t slot, uint64_t first, Listing& listing) const {
  std::vector<uint64_t>& sections = listing.sections;
  if (const auto known = chains_.find(slot); known != chains_.end() && known->second.first == first) {
    sections.insert(sections.end(), known->second.sections.begin(), known->second.sections.end());
    return;
  }
  Chain chain{first, {}};
  uint64_t next = first;
  for (int n = 0; next != 0 && n < kMaxFragments; ++n) {
    const auto fragment = probe.Block<RuntimeLayout::RangeFragment::kBytes>(next);
    chain.sections.push_back(FieldOf<uint64_t>(fragment, layout_.range_fragment.section));
    next = FieldOf<uint64_t>(fragment, layout_.range_fragment.next) & ~kTag;
  }
  sections.insert(sections.end(), chain.sections.begin(), chain.sections.end());
  if (probe.ok() && next == 0) listing.fresh.emplace_back(slot, std::move(chain));
}

// Its sections have been read, and those that can't be freed are known as such.
void CodeRanges::Remember(uint64_t slot, Chain chain) {
  const bool permanent = std::all_of(chain.sections.begin(), chain.sections.end(),
                                     [this](uint64_t section) { return permanent_.contains(section); });
  if (!permanent) {
    chains_.erase(slot);
    return;
  }
  if (chains_.size() >= kMaxSections) chains_.clear();
  chains_.insert_or_assign(slot, std::move(chain));
}

std::vector<uint64_t> CodeRanges::Starts(MemoryProbe& probe, const CodeSection& section, size_t most) const {
  std::vector<uint64_t> starts;
  const std::optional<CodeHeap> heap = HeapOf(probe, section);
  if (!heap) return starts;
  const uint64_t base = heap->map_base, map = heap->nibble_map;
  std::array<uint32_t, 256> words;
  const uint64_t count = (heap->used.end - base + kNibbleWordBytes - 1) / kNibbleWordBytes;
  for (uint64_t first = 0; first < count && starts.size() < most; first += words.size()) {
    const uint64_t some = std::min<uint64_t>(words.size(), count - first);
    if (!probe.Read(map + 4 * first, std::as_writable_bytes(std::span(words)).first(4 * some))) break;
    for (uint64_t i = 0; i < some; ++i) AppendMethodStarts(layout_.nibble_map, first + i, words[i], starts);
  }
  starts.resize(std::min(starts.size(), most));
  for (uint64_t& start : starts) start += base;
  return starts;
}

const char* StubKindName(uint32_t major, uint32_t kind) {
  const RuntimeGeneration* generation = RuntimeGenerationOf(major);
  const char* name =
      generation != nullptr && kind < generation->stub_kinds.size() ? generation->stub_kinds[kind] : nullptr;
  return name != nullptr ? name : "Unknown";
}

}  // namespace clrsampler
