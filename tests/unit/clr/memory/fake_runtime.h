// A tiny CoreCLR in made-up memory: its map of code ranges, code heaps, methods, types and modules, laid out as
// runtime_layout.h says of a major version.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_RUNTIME_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_RUNTIME_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clr/memory/runtime_memory.h"
#include "formats/byte_reader.h"
#include "unit/clr/memory/descriptor_11.h"
#include "unit/clr/memory/fake_memory.h"
#include "unit/formats/pe/metadata_builder.h"
#include "unit/formats/runtime/nibble_heap.h"

namespace clrsampler {

struct RuntimeKind {
  RuntimeKind(uint32_t number, ElfMachine architecture = ElfMachine::kX64) : version(number), machine(architecture) {}
  uint32_t version;  // the first number of it
  ElfMachine machine;
};
// "Net9Arm64", for parameters of tests.
inline std::string Text(const RuntimeKind& kind) {
  return absl::StrCat("Net", kind.version, kind.machine == ElfMachine::kArm64 ? "Arm64" : "");
}
inline std::ostream& operator<<(std::ostream& out, const RuntimeKind& kind) { return out << Text(kind); }

class FakeRuntime {
 public:
  static constexpr uint64_t kImage = 0x7E0000000000, kImageBytes = 0x10000;
  static constexpr uint64_t kClass = kImage + 0x100;  // what pointers to virtual functions point to
  static constexpr uint64_t kDacTable = kImage + 0x1000, kRangeMap = kImage + 0x2000, kDescriptor = kImage + 0x4000;
  static constexpr uint32_t kCollectible = 1, kCodeHeap = 2, kRangeList = 4;
  // MethodDesc kinds
  static constexpr uint16_t kOrdinary = 0, kArrayMethod = 4, kInstantiated = 5, kDynamic = 7;

  explicit FakeRuntime(RuntimeKind kind, FakeMemory empty = FakeMemory())
      : memory(std::move(empty)), layout(*RuntimeLayout::ForMajor(kind.version, kind.machine)) {
    const uint32_t major = kind.version;
    memory.Map(kImage, kImageBytes);
    memory.Set<uint64_t>(kDacTable, kRangeMap);
    if (!layout.method_desc.code_data) {
      const uint64_t variable = memory.Allocate(8);
      domain_ = memory.Allocate(4096);
      memory.Set<uint64_t>(variable, domain_);
      memory.Set<uint64_t>(kDacTable + 8 * layout.version_table.app_domain_entry, variable);
    }
    if (major >= 11) {
      SetDescriptor(Descriptor11());
    } else if (major >= 9) {
      SetDescriptor(R"({"types":{},"globals":{"ExecutionManagerCodeRangeMapAddress":[[0],"pointer"]},)"
                    R"("contracts":{"CodeVersions":1,"ExecutionManager":)" +
                    std::string(major >= 10 ? "2" : "1") + R"(,"Loader":1,"RuntimeTypeSystem":1}})");
    }
  }

  FakeMemory memory;
  RuntimeLayout layout;
  MetadataCopies copies;

  RuntimePlace place() const {
    return {layout.major, layout.machine, image(), kDacTable, layout.major >= 9 ? kDescriptor : 0};
  }
  AddressRange image() const { return {kImage, kImage + kImageBytes}; }
  absl::StatusOr<std::unique_ptr<RuntimeMemory>> Attach(bool proven = true,
                                                        const MappedContentFinder& files = nullptr) {
    return RuntimeMemory::Attach(place(), memory, files, copies, proven);
  }

  void SetDescriptor(const std::string& json, std::vector<uint64_t> pointers = {kRangeMap}) {
    const uint64_t text = memory.Allocate(json.size()), table = memory.Allocate(8 * pointers.size());
    memory.SetBytes(text, AsBytes(json));
    memory.SetBytes(table, std::as_bytes(std::span(pointers)));
    memory.SetBytes(kDescriptor, AsBytes(absl::string_view("DNCCDAC\0", 8)));
    memory.Set<uint32_t>(kDescriptor + 8, 1);
    memory.Set<uint32_t>(kDescriptor + 12, static_cast<uint32_t>(json.size()));
    memory.Set<uint64_t>(kDescriptor + 16, text);
    memory.Set<uint32_t>(kDescriptor + 24, static_cast<uint32_t>(pointers.size()));
    memory.Set<uint64_t>(kDescriptor + 32, table);
  }

  // An object of a class of the runtime.
  uint64_t Object(size_t bytes) {
    const uint64_t address = memory.Allocate(bytes);
    memory.Set<uint64_t>(address, kClass);
    return address;
  }

  // ---- code ranges
  // The address of the range section.
  uint64_t AddSection(AddressRange range, uint32_t flags) {
    const auto& at = layout.range_section;
    const uint64_t section = memory.Allocate(RuntimeLayout::RangeSection::kBytes);
    memory.Set<uint64_t>(section + at.begin, range.begin);
    memory.Set<uint64_t>(section + at.end, range.end);
    memory.Set<uint64_t>(section + at.flags, flags | 0xABCD'0000'0000'0000);  // the upper half is no part of it
    memory.Set<uint64_t>(section + at.jit_manager, Object(8));
    for (uint64_t chunk = range.begin >> 17; chunk <= (range.end - 1) >> 17; ++chunk) {
      AddFragment(chunk << 17, range, section, (flags & kCollectible) != 0);
    }
    return section;
  }
  // Where the lowest level's entry of an address is.
  uint64_t MapSlot(uint64_t address, bool tagged = false) {
    uint64_t table = kRangeMap;
    for (int level = 4; level > 0; --level) {
      const uint64_t slot = table + 8 * (address >> (17 + 8 * level) & 255);
      table = memory.Value<uint64_t>(slot).value_or(0) & ~uint64_t{1};
      if (table == 0) table = memory.Allocate(8 * 256);
      memory.Set<uint64_t>(slot, table | (tagged ? 1 : 0));
    }
    return table + 8 * (address >> 17 & 255);
  }
  // The address of the fragment; before those that are there.
  uint64_t AddFragment(uint64_t address, AddressRange range, uint64_t section, bool tagged) {
    const auto& at = layout.range_fragment;
    const uint64_t slot = MapSlot(address, tagged), fragment = memory.Allocate(RuntimeLayout::RangeFragment::kBytes);
    memory.Set<uint64_t>(fragment + at.next, *memory.Value<uint64_t>(slot));
    memory.Set<uint64_t>(fragment + at.begin, range.begin);
    memory.Set<uint64_t>(fragment + at.end, range.end);
    memory.Set<uint64_t>(fragment + at.section, section);
    memory.Set<uint64_t>(slot, fragment | (tagged ? 1 : 0));
    return fragment;
  }
  uint64_t AddStubs(AddressRange range, uint32_t kind, bool collectible = false) {
    const uint64_t section = AddSection(range, kRangeList | (collectible ? kCollectible : 0)),
                   list = memory.Allocate(512);
    memory.Set<uint64_t>(section + layout.range_section.range_list, list);
    memory.Set<uint32_t>(list + layout.range_list_kind, kind);
    return section;
  }

  struct Heap {
    AddressRange range;
    uint64_t section = 0;
    uint64_t list = 0;  // HeapList
    uint64_t map = 0;
    NibbleHeap nibbles{NibbleMapVersion::k1};
    uint64_t unwind_data = 0;  // how many functions have some
  };
  Heap& AddHeap(uint64_t begin, uint64_t bytes, bool collectible = false) {
    auto heap = std::make_unique<Heap>();
    heap->range = {begin, begin + bytes};
    heap->section = AddSection(heap->range, kCodeHeap | (collectible ? kCollectible : 0));
    heap->list = memory.Allocate(128);
    heap->nibbles = NibbleHeap(layout.nibble_map, bytes);
    heap->map = memory.Allocate(4 * heap->nibbles.words.size());
    memory.Map(begin, bytes);
    memory.Set<uint64_t>(heap->section + layout.range_section.heap_list, heap->list);
    memory.Set<uint64_t>(heap->list + layout.code_heap.start, begin);
    memory.Set<uint64_t>(heap->list + layout.code_heap.end, begin + bytes);
    memory.Set<uint64_t>(heap->list + layout.code_heap.map_base, begin);
    memory.Set<uint64_t>(heap->list + layout.code_heap.header_map, heap->map);
    heaps_.push_back(std::move(heap));
    return *heaps_.back();
  }
  // The owner of the heap: a LoaderAllocator with this number.
  void SetOwner(const Heap& heap, uint64_t number) {
    const uint64_t allocator = Object(layout.loader_allocator_number + 8);
    memory.Set<uint64_t>(allocator + layout.loader_allocator_number, number);
    memory.Set<uint64_t>(heap.list + layout.code_heap.loader_allocator, allocator);
  }
  // The address of its code header. `offset` is at least 8.
  uint64_t AddCode(Heap& heap, uint64_t offset, uint32_t bytes, uint64_t method_desc, uint32_t funclet_bytes = 0) {
    const uint64_t header = memory.Allocate(128);
    memory.Set<uint64_t>(header + layout.code_header.method_desc, method_desc);
    memory.Set<uint32_t>(header + layout.code_header.unwind_count, funclet_bytes != 0 ? 2 : 1);
    const uint64_t unwinds = header + layout.code_header.unwinds;
    const uint32_t begin = static_cast<uint32_t>(offset);
    AddFunction(heap, unwinds, begin, bytes);
    AddFunction(heap, unwinds + layout.runtime_function.bytes, begin + bytes, funclet_bytes);
    SetHeader(heap, offset, header);
    heap.nibbles.Add(offset, bytes + funclet_bytes);
    WriteNibbles(heap);
    return header;
  }
  // A RUNTIME_FUNCTION. On arm64 its length is in its unwind data, which goes to a place of its own behind the heap.
  void AddFunction(Heap& heap, uint64_t at, uint32_t begin, uint32_t bytes) {
    memory.Set<uint32_t>(at, begin);
    if (layout.runtime_function.has_end) {
      memory.Set<uint32_t>(at + 4, begin + bytes);
      return;
    }
    constexpr uint64_t kBehind = 0x100'0000, kBytes = 0x1'0000;
    if (heap.unwind_data == 0) memory.Map(heap.range.begin + kBehind, kBytes);
    const uint64_t unwind_data = heap.range.begin + kBehind + 4 * heap.unwind_data++ % kBytes;
    memory.Set<uint32_t>(unwind_data, 0x5800'0000 | bytes / 4);  // the bits above the length are other fields
    memory.Set<uint32_t>(at + 4, static_cast<uint32_t>(unwind_data - heap.range.begin));
  }
  void SetHeader(const Heap& heap, uint64_t offset, uint64_t header) {
    memory.Set<uint64_t>(heap.range.begin + offset - 8, header);
  }
  void WriteNibbles(const Heap& heap) {
    memory.SetBytes(heap.map,
                    std::as_bytes(std::span(heap.nibbles.words)).first(4 * (heap.range.end - heap.range.begin) / 256));
  }

  // ---- modules
  // Two bodies of IL in each image: `ret`, and one whose second instruction leads back to the first.
  static constexpr uint32_t kStraightIl = 0x2048, kLoopIl = 0x204A;
  // A PE image with nothing else but this metadata; not flat: as the loader lays it out.
  static std::string Image(const std::string& metadata, bool flat) {
    std::string image(flat ? 0x1000 : 0x2000, '\0');
    const auto put = [&](size_t offset, auto value) { std::memcpy(image.data() + offset, &value, sizeof value); };
    put(0, uint16_t{0x5A4D});
    put(60, uint32_t{0x80});
    put(0x80, uint32_t{0x4550});
    put(0x86, uint16_t{1});
    put(0x94, uint16_t{240});
    put(0x98, uint16_t{0x20B});
    put(0x98 + 108, uint32_t{16});
    put(0x98 + 112 + 14 * 8, uint32_t{0x2000});
    put(0x98 + 112 + 14 * 8 + 4, uint32_t{72});
    const size_t row = 0x98 + 240;
    put(row + 8, static_cast<uint32_t>(0x50 + metadata.size()));
    put(row + 12, uint32_t{0x2000});
    put(row + 16, static_cast<uint32_t>(0x50 + metadata.size()));
    put(row + 20, uint32_t{0x1000});
    std::string cli(0x50, '\0');
    const uint32_t words[] = {72, 0, 0x2050, static_cast<uint32_t>(metadata.size())};
    std::memcpy(cli.data(), words, sizeof words);
    constexpr uint8_t kBodies[] = {0x06, 0x2A, 0x12, 0x00, 0x2B, 0xFD, 0x2A};
    std::memcpy(cli.data() + 72, kBodies, sizeof kBodies);
    return image + cli + metadata;
  }
  uint64_t AddModule(const std::string& metadata, bool flat = true) {
    const std::string bytes = Image(metadata, flat);
    const uint64_t base = memory.Allocate(std::max<size_t>(bytes.size(), 0x1800));
    memory.SetBytes(base, AsBytes(bytes));
    const uint64_t module = AddModuleWithoutImage(), assembly = memory.Allocate(64), image = memory.Allocate(256),
                   pe_layout = memory.Allocate(RuntimeLayout::PeLayout::kBytes);
    memory.Set<uint64_t>(module + layout.module.assembly_file, assembly);
    if (layout.module.base) memory.Set<uint64_t>(module + *layout.module.base, base);
    memory.Set<uint64_t>(assembly + layout.pe_assembly_image, image);
    memory.Set<uint64_t>(image + (flat ? layout.pe_image.flat : layout.pe_image.loaded), pe_layout);
    memory.Set<uint64_t>(pe_layout + layout.pe_layout.base, base);
    memory.Set<uint32_t>(pe_layout + layout.pe_layout.flags, flat ? 0 : 1);
    return module;
  }
  uint64_t AddModuleWithoutImage() {
    const uint64_t module = Object(1600);
    SetModuleFlags(module, kReleaseBuild);
    return module;
  }
  // The bit by which these two differ allows the compiler to optimise.
  static constexpr uint32_t kReleaseBuild = 0x00209821, kDebugBuild = 0x00209021;
  void SetModuleFlags(uint64_t module, uint32_t flags) { memory.Set<uint32_t>(module + layout.module.flags, flags); }
  // As Reflection.Emit's are, on 9 and newer.
  void SetEmitted(uint64_t module, const std::string& metadata) {
    const uint64_t copy = memory.Allocate(4 + metadata.size());
    memory.Set<uint32_t>(copy, static_cast<uint32_t>(metadata.size()));
    memory.SetBytes(copy + 4, AsBytes(metadata));
    memory.Set<uint64_t>(module + *layout.module.dynamic_metadata, copy);
  }

  // ---- types and methods
  uint64_t AddType(uint64_t module, uint32_t rid, std::vector<uint64_t> arguments = {}) {
    const auto& at = layout.method_table;
    const uint64_t table = memory.Allocate(RuntimeLayout::MethodTable::kBytes);
    memory.Set<uint32_t>(table + at.base_size, 24);
    if (at.rid_in_flags2) {
      memory.Set<uint32_t>(table + at.flags2, rid << 8 | 0x5A);
    } else {
      memory.Set<uint16_t>(table + at.flags2, 0x5A4A);  // without the bit for a defining module of its own
      memory.Set<uint16_t>(table + at.flags2 + 2, static_cast<uint16_t>(rid));
    }
    memory.Set<uint16_t>(table + at.virtuals, 4);
    memory.Set<uint64_t>(table + at.module, module);
    if (!arguments.empty()) {
      memory.Set<uint32_t>(table + at.flags, 0x10);
      SetArguments(table, arguments);
    }
    return table;
  }
  void SetArguments(uint64_t table, const std::vector<uint64_t>& arguments) {
    // Two dictionaries: a base class's, and its own.
    const uint64_t own = Handles(arguments), info = memory.Allocate(8 + 16);
    memory.Set<uint16_t>(info + 4, 2);
    memory.Set<uint16_t>(info + 6, static_cast<uint16_t>(arguments.size()));
    memory.Set<uint64_t>(info + 8, 0xDEAD);
    memory.Set<uint64_t>(info + 16, own);
    memory.Set<uint64_t>(table + layout.method_table.arguments, info + 8);
  }
  uint64_t Handles(const std::vector<uint64_t>& handles) {
    const uint64_t table = memory.Allocate(8 * handles.size());
    memory.SetBytes(table, std::as_bytes(std::span(handles)));
    return table;
  }
  // rank 0: a vector, "T[]".
  uint64_t AddArray(uint64_t module, uint64_t element, uint32_t rank) {
    const uint64_t table = AddType(module, 1);
    memory.Set<uint32_t>(table + layout.method_table.flags, rank == 0 ? 0x800A0008 : 0x80080008);
    memory.Set<uint32_t>(table + layout.method_table.base_size, 24 + 8 * rank);
    memory.Set<uint64_t>(table + layout.method_table.arguments, element);
    return table;
  }
  // A tagged handle.
  uint64_t AddTypeDesc(uint8_t kind, uint64_t argument = 0) {
    const uint64_t desc = memory.Allocate(256);
    memory.Set<uint32_t>(desc, kind | 0xABCD00);
    memory.Set<uint64_t>(desc + layout.type_desc.argument, argument);
    return desc | 2;
  }
  uint64_t AddVariable(uint64_t module, uint32_t rid, bool of_method = false) {
    const uint64_t desc = AddTypeDesc(of_method ? 0x1E : 0x13) & ~uint64_t{2};
    memory.Set<uint64_t>(desc + layout.type_desc.variable_module, module);
    memory.Set<uint32_t>(desc + layout.type_desc.variable_token, 0x2A000000 | rid);
    return desc | 2;
  }
  uint64_t AddFunctionPointer(const std::vector<uint64_t>& types) {
    const uint64_t desc = AddTypeDesc(0x1B) & ~uint64_t{2};
    memory.Set<uint32_t>(desc + layout.type_desc.function_count, static_cast<uint32_t>(types.size() - 1));
    memory.SetBytes(desc + layout.type_desc.function_types, std::as_bytes(std::span(types)));
    return desc | 2;
  }

  // A MethodDesc, the third in its chunk.
  uint64_t AddMethod(uint64_t table, uint32_t rid, uint16_t kind = kOrdinary) {
    constexpr uint64_t kIndex = 4;  // in units of 8 bytes
    const uint64_t chunk = memory.Allocate(24 + 8 * kIndex + 96);
    const uint64_t desc = chunk + 24 + 8 * kIndex;
    memory.Set<uint64_t>(chunk + layout.method_desc_chunk.method_table, table);
    memory.Set<uint8_t>(chunk + layout.method_desc_chunk.size, 8);
    memory.Set<uint16_t>(chunk + layout.method_desc_chunk.token_range, static_cast<uint16_t>(rid >> 12 | 0xA000));
    memory.Set<uint16_t>(desc + layout.method_desc.flags3, static_cast<uint16_t>(rid & 0xFFF));
    memory.Set<uint8_t>(desc + layout.method_desc.chunk_index, kIndex);
    memory.Set<uint16_t>(desc + layout.method_desc.flags, static_cast<uint16_t>(kind | 0x18));
    return desc;
  }
  uint64_t AddGenericMethod(uint64_t table, uint32_t rid, const std::vector<uint64_t>& arguments) {
    const uint64_t desc = AddMethod(table, rid, kInstantiated);
    memory.Set<uint64_t>(desc + layout.instantiated_method.arguments, Handles(arguments));
    memory.Set<uint16_t>(desc + layout.instantiated_method.count, static_cast<uint16_t>(arguments.size()));
    return desc;
  }
  // The layout of .NET 11. `async` is what its AsyncMethodData says.
  uint64_t AddAsyncMethod(uint64_t table, uint32_t rid, uint32_t async, uint16_t kind = kOrdinary) {
    constexpr uint16_t kHasAsyncData = 0x40;
    constexpr uint64_t kOrdinaryBytes = 16, kInstantiatedBytes = 40, kSlotBytes = 8, kImplementationBytes = 16;
    const uint64_t desc = AddMethod(table, rid, kind);
    const uint64_t flags = desc + layout.method_desc.flags;
    memory.Set<uint16_t>(flags, static_cast<uint16_t>(*memory.Value<uint16_t>(flags) | kHasAsyncData));
    memory.Set<uint32_t>(
        desc + (kind == kOrdinary ? kOrdinaryBytes : kInstantiatedBytes) + kSlotBytes + kImplementationBytes, async);
    return desc;
  }
  uint64_t AddDynamicMethod(uint64_t table, const std::string& name) {
    const uint64_t desc = AddMethod(table, 0, kDynamic), text = memory.Allocate(name.size() + 256);
    memory.SetText(text, name);
    memory.Set<uint64_t>(desc + layout.dynamic_method_name, text);
    return desc;
  }
  void MakeTieringEligible(uint64_t method_desc) {
    const uint64_t at = method_desc + layout.method_desc.flags3;
    memory.Set<uint16_t>(at, *memory.Value<uint16_t>(at) | 0x8000);
  }
  // One more version of a method, first in the list.
  void AddVersion(uint64_t method_desc, uint64_t code, uint32_t tier) {
    uint64_t state = 0;
    if (layout.method_desc.code_data) {
      uint64_t data = *memory.Value<uint64_t>(method_desc + *layout.method_desc.code_data);
      if (data == 0) {
        data = memory.Allocate(8);
        memory.Set<uint64_t>(method_desc + *layout.method_desc.code_data, data);
        memory.Set<uint64_t>(data, NewVersionState(method_desc));
      }
      state = *memory.Value<uint64_t>(data);
    } else {
      for (const uint64_t known : version_states_) {
        if (known != 0 && *memory.Value<uint64_t>(known) == method_desc) state = known;
      }
      if (state == 0) {
        state = NewVersionState(method_desc);
        version_states_.push_back(state);
        version_states_.push_back(0);  // the table has holes
        WriteVersionTable();
      }
    }
    const uint64_t node = memory.Allocate(RuntimeLayout::VersionNode::kBytes);
    const uint64_t head = state + layout.version_state.first_node;
    memory.Set<uint64_t>(node + layout.version_node.code, code);
    memory.Set<uint64_t>(node + layout.version_node.method_desc, method_desc);
    memory.Set<uint64_t>(node + layout.version_node.next, *memory.Value<uint64_t>(head));
    memory.Set<uint32_t>(node + layout.version_node.tier, tier);
    memory.Set<uint64_t>(head, node);
  }
  // 8: the AppDomain's table of them. Its address, and another one in its place.
  uint64_t VersionTable() { return *memory.Value<uint64_t>(domain_ + layout.version_table.table); }
  void SetVersionTable(uint64_t address, uint32_t slots, uint32_t count) {
    const uint64_t at = domain_ + layout.version_table.table;
    memory.Set<uint64_t>(at, address);
    memory.Set<uint32_t>(at + 8, slots);
    memory.Set<uint32_t>(at + 12, count);
    memory.Set<uint32_t>(at + 16, count);
    memory.Set<uint32_t>(at + 20, slots);
  }

 private:
  uint64_t NewVersionState(uint64_t method_desc) {
    const uint64_t state = memory.Allocate(32);
    memory.Set<uint64_t>(state, method_desc);
    return state;
  }
  // 8: SHash of the AppDomain.
  void WriteVersionTable() {
    const auto size = static_cast<uint32_t>(version_states_.size());
    SetVersionTable(Handles(version_states_), size, size / 2);
  }

  std::vector<std::unique_ptr<Heap>> heaps_;
  std::vector<uint64_t> version_states_;
  uint64_t domain_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_RUNTIME_H_
