#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clr/memory/runtime_layout.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Contracts whose structures are read here, with the versions whose algorithms are written here. These are the newest
// version that is a number (9 and 10) and the newest one that is a text (since 11).
struct KnownContract {
  absl::string_view name;
  uint32_t newest_number, newest_text;
};
constexpr KnownContract kContracts[] = {
    {"CodeVersions", 1, 1},
    {"ExecutionManager", 2, 1},
    {"Loader", 1, 1},
    {"RuntimeTypeSystem", 1, 1},
};
// The map of method starts is a contract's algorithm: 2 and "c1" have the newer one.
NibbleMapVersion NibbleMapOf(const ContractVersion& version) {
  return version.is_text || version.number >= 2 ? NibbleMapVersion::k2 : NibbleMapVersion::k1;
}

absl::Status CheckContracts(const ContractDescriptor& descriptor, DescribedLayout described) {
  for (const KnownContract& known : kContracts) {
    const std::optional<ContractVersion> version = descriptor.VersionOf(known.name);
    if (!version) {
      if (described != DescribedLayout::kWhole) continue;
      return absl::FailedPreconditionError(absl::StrCat("it does not describe its contract ", known.name));
    }
    const uint32_t newest = version->is_text ? known.newest_text : known.newest_number;
    if (version->number >= 1 && version->number <= newest) continue;
    return absl::FailedPreconditionError(absl::StrCat("its contract ", known.name, " has version ", version->Text(),
                                                      ", known is ", ContractVersion{version->is_text, newest}.Text()));
  }
  return absl::OkStatus();
}

// Takes offsets from a descriptor and notes which ones differ from those that are known.
class OffsetSetter {
 public:
  OffsetSetter(const ContractDescriptor& descriptor, std::vector<std::string>& differences)
      : descriptor_(descriptor), differences_(differences) {}

  template <typename Offset>
  void operator()(absl::string_view type, absl::string_view field, Offset& value) {
    const std::optional<uint32_t> offset = descriptor_.Offset(type, field);
    if (!offset) {
      if (absent_.empty()) absent_ = absl::StrCat(type, ".", field);
    } else if (value != *offset) {
      differences_.push_back(absl::StrCat(type, ".", field, " is at ", *offset));
      value = *offset;
    }
  }

  // The first field that the descriptor does not know; "": it knows them all.
  const std::string& absent() const { return absent_; }

 private:
  const ContractDescriptor& descriptor_;
  std::vector<std::string>& differences_;
  std::string absent_;
};

void SetCodeOffsets(OffsetSetter& set, RuntimeLayout& layout) {
  set("RangeSectionFragment", "Next", layout.range_fragment.next);
  set("RangeSectionFragment", "RangeBegin", layout.range_fragment.begin);
  set("RangeSectionFragment", "RangeEndOpen", layout.range_fragment.end);
  set("RangeSectionFragment", "RangeSection", layout.range_fragment.section);
  set("RangeSection", "RangeBegin", layout.range_section.begin);
  set("RangeSection", "RangeEndOpen", layout.range_section.end);
  set("RangeSection", "Flags", layout.range_section.flags);
  set("RangeSection", "JitManager", layout.range_section.jit_manager);
  set("RangeSection", "R2RModule", layout.range_section.r2r_module);
  set("RangeSection", "HeapList", layout.range_section.heap_list);
  set("CodeHeapListNode", "StartAddress", layout.code_heap.start);
  set("CodeHeapListNode", "EndAddress", layout.code_heap.end);
  set("CodeHeapListNode", "MapBase", layout.code_heap.map_base);
  set("CodeHeapListNode", "HeaderMap", layout.code_heap.header_map);
  set("RealCodeHeader", "MethodDesc", layout.code_header.method_desc);
  set("RealCodeHeader", "NumUnwindInfos", layout.code_header.unwind_count);
  set("RealCodeHeader", "UnwindInfos", layout.code_header.unwinds);
  set("HashMap", "Buckets", layout.hash_map_buckets);
  set("MethodDescVersioningState", "NativeCodeVersionNode", layout.version_state.first_node);
  set("NativeCodeVersionNode", "NativeCode", layout.version_node.code);
  set("NativeCodeVersionNode", "MethodDesc", layout.version_node.method_desc);
  set("NativeCodeVersionNode", "Next", layout.version_node.next);
}

void SetMethodOffsets(OffsetSetter& set, RuntimeLayout& layout) {
  set("MethodDesc", "Flags3AndTokenRemainder", layout.method_desc.flags3);
  set("MethodDesc", "ChunkIndex", layout.method_desc.chunk_index);
  set("MethodDesc", "Slot", layout.method_desc.slot);
  set("MethodDesc", "Flags", layout.method_desc.flags);
  set("MethodDesc", "CodeData", layout.method_desc.code_data);
  set("MethodDescChunk", "MethodTable", layout.method_desc_chunk.method_table);
  set("MethodDescChunk", "Size", layout.method_desc_chunk.size);
  set("MethodDescChunk", "FlagsAndTokenRange", layout.method_desc_chunk.token_range);
  set("MethodDescChunk", "!", layout.method_desc_chunk.bytes);
  set("InstantiatedMethodDesc", "PerInstInfo", layout.instantiated_method.arguments);
  set("InstantiatedMethodDesc", "NumGenericArgs", layout.instantiated_method.count);
  set("DynamicMethodDesc", "MethodName", layout.dynamic_method_name);
}

void SetTypeOffsets(OffsetSetter& set, RuntimeLayout& layout) {
  set("MethodTable", "MTFlags", layout.method_table.flags);
  set("MethodTable", "BaseSize", layout.method_table.base_size);
  set("MethodTable", "MTFlags2", layout.method_table.flags2);
  set("MethodTable", "NumVirtuals", layout.method_table.virtuals);
  set("MethodTable", "Module", layout.method_table.module);
  set("MethodTable", "PerInstInfo", layout.method_table.arguments);
  set("ParamTypeDesc", "TypeArg", layout.type_desc.argument);
  set("TypeVarTypeDesc", "Module", layout.type_desc.variable_module);
  set("TypeVarTypeDesc", "Token", layout.type_desc.variable_token);
  set("FnPtrTypeDesc", "NumArgs", layout.type_desc.function_count);
  set("FnPtrTypeDesc", "RetAndArgTypes", layout.type_desc.function_types);
}

void SetImageOffsets(OffsetSetter& set, RuntimeLayout& layout) {
  set("Module", "PEAssembly", layout.module.assembly_file);
  set("Module", "Base", layout.module.base);
  set("Module", "ReadyToRunInfo", layout.module.r2r_info);
  set("Module", "DynamicMetadata", layout.module.dynamic_metadata);
  set("PEAssembly", "PEImage", layout.pe_assembly_image);
  set("PEImage", "LoadedImageLayout", layout.pe_image.loaded);
  set("PEImageLayout", "Base", layout.pe_layout.base);
  set("PEImageLayout", "Size", layout.pe_layout.size);
  set("PEImageLayout", "Flags", layout.pe_layout.flags);
  set("ReadyToRunInfo", "ReadyToRunHeader", layout.r2r_info.header);
  set("ReadyToRunInfo", "CompositeInfo", layout.r2r_info.composite);
  set("ReadyToRunInfo", "RuntimeFunctions", layout.r2r_info.functions);
  set("ReadyToRunInfo", "NumRuntimeFunctions", layout.r2r_info.function_count);
  set("ReadyToRunInfo", "EntryPointToMethodDescMap", layout.r2r_info.entry_points);
}

// Everything is read in blocks of fixed size; a field outside its block would be read as its neighbour's bytes.
bool Fits(uint32_t block, std::initializer_list<uint32_t> offsets) {
  return std::all_of(offsets.begin(), offsets.end(), [&](uint32_t at) { return at <= block - 8; });
}

bool CodeFits(const RuntimeLayout& layout) {
  return Fits(RuntimeLayout::RangeFragment::kBytes, {layout.range_fragment.next, layout.range_fragment.begin,
                                                     layout.range_fragment.end, layout.range_fragment.section}) &&
         Fits(RuntimeLayout::RangeSection::kBytes,
              {layout.range_section.begin, layout.range_section.end, layout.range_section.flags,
               layout.range_section.jit_manager, layout.range_section.r2r_module, layout.range_section.heap_list}) &&
         Fits(RuntimeLayout::CodeHeap::kBytes,
              {layout.code_heap.start, layout.code_heap.end, layout.code_heap.map_base, layout.code_heap.header_map}) &&
         Fits(RuntimeLayout::VersionNode::kBytes,
              {layout.version_node.code, layout.version_node.method_desc, layout.version_node.next}) &&
         layout.code_header.unwinds == 36 && layout.code_header.method_desc == 24 &&
         layout.code_header.unwind_count == 32;
}

bool MethodsAndImagesFit(const RuntimeLayout& layout) {
  return Fits(RuntimeLayout::MethodDesc::kBytes,
              {layout.method_desc.flags3, layout.method_desc.chunk_index, layout.method_desc.slot,
               layout.method_desc.flags, layout.instantiated_method.arguments, layout.instantiated_method.count,
               layout.dynamic_method_name, layout.method_desc.code_data.value_or(0)}) &&
         Fits(RuntimeLayout::MethodTable::kBytes,
              {layout.method_table.flags, layout.method_table.base_size, layout.method_table.flags2,
               layout.method_table.virtuals, layout.method_table.module, layout.method_table.arguments}) &&
         Fits(RuntimeLayout::TypeDesc::kBytes, {layout.type_desc.argument, layout.type_desc.variable_module,
                                                layout.type_desc.variable_token, layout.type_desc.function_count}) &&
         Fits(RuntimeLayout::PeLayout::kBytes, {layout.pe_layout.base, layout.pe_layout.size}) &&
         layout.pe_layout.flags <= RuntimeLayout::PeLayout::kBytes - 4 &&
         layout.pe_layout.base + 8 <= layout.pe_layout.flags && layout.pe_layout.size + 4 <= layout.pe_layout.flags &&
         Fits(RuntimeLayout::R2rInfo::kBytes, {layout.r2r_info.header, layout.r2r_info.composite,
                                               layout.r2r_info.functions, layout.r2r_info.function_count}) &&
         layout.method_desc_chunk.bytes == 24 && layout.method_desc_chunk.size < 23 &&
         layout.method_desc_chunk.token_range < 23 && layout.method_desc_chunk.method_table == 0;
}

}  // namespace

absl::Status RuntimeLayout::Overlay(const ContractDescriptor& descriptor, std::vector<std::string>& differences) {
  RETURN_IF_ERROR(CheckContracts(descriptor, described));
  if (const auto version = descriptor.VersionOf("ExecutionManager")) nibble_map = NibbleMapOf(*version);
  OffsetSetter set(descriptor, differences);
  SetCodeOffsets(set, *this);
  SetMethodOffsets(set, *this);
  SetTypeOffsets(set, *this);
  SetImageOffsets(set, *this);
  OverlayThreads(descriptor);
  module.flags = descriptor.Offset("Module", "Flags").value_or(module.flags);  // tiers need it, and names do not
  if (const auto bits = descriptor.Global("MethodDescTokenRemainderBitCount"); bits && *bits > 0 && *bits < 16) {
    token_remainder_bits = static_cast<uint32_t>(*bits);
  }
  if (described == DescribedLayout::kWhole && !set.absent().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("its contract descriptor does not say where ", set.absent(), " is"));
  }
  const auto method_bytes = descriptor.Offset("MethodDesc", "!"),
             instantiated_bytes = descriptor.Offset("InstantiatedMethodDesc", "!"),
             own_slot = descriptor.Offset("NonVtableSlot", "!"), implementation = descriptor.Offset("MethodImpl", "!"),
             code_slot = descriptor.Offset("NativeCodeSlot", "!"),
             flags = descriptor.Offset("AsyncMethodData", "Flags");
  if (method_bytes && instantiated_bytes && own_slot && implementation && code_slot && flags) {
    async_method = {*method_bytes, *instantiated_bytes, *own_slot, *implementation, *code_slot, *flags};
  }
  if (described == DescribedLayout::kWhole) {
    set("PEImage", "FlatImageLayout", pe_image.flat);
    set("RangeSection", "RangeList", range_section.range_list);
    set("CodeRangeMapRangeList", "RangeListType", range_list_kind);
    set("NativeCodeVersionNode", "OptimizationTier", version_node.tier);
  }
  const auto function_bytes = descriptor.Offset("RuntimeFunction", "!"),
             unwind_data = descriptor.Offset("RuntimeFunction", "UnwindData");
  if (function_bytes.value_or(runtime_function.bytes) != runtime_function.bytes ||
      unwind_data.value_or(runtime_function.unwind_data) != runtime_function.unwind_data) {
    return absl::FailedPreconditionError("its functions are described otherwise than on its architecture");
  }
  if (CodeFits(*this) && MethodsAndImagesFit(*this)) return absl::OkStatus();
  return absl::FailedPreconditionError("its structures are larger than the ones that are known");
}

// Names do not depend on these. A runtime that describes them differently is read all the same, without its threads.
void RuntimeLayout::OverlayThreads(const ContractDescriptor& descriptor) {
  const auto take = [&](absl::string_view type, absl::string_view field, uint32_t& value) {
    value = descriptor.Offset(type, field).value_or(value);
  };
  take("ThreadStore", "FirstThreadLink", thread_list.first);
  take("Thread", "LinkNext", thread_list.next);
  take("Thread", "Id", thread_list.managed_id);
  take("Thread", "OSId", thread_list.os_id);
  if (const auto locals = descriptor.Offset("Thread", "RuntimeThreadLocals")) thread_list.locals = *locals;
  if (const auto context = descriptor.Offset("RuntimeThreadLocals", "AllocContext")) {
    // 9 has no structure between the two.
    thread_list.allocation_context = *context + descriptor.Offset("EEAllocContext", "GCAllocationContext").value_or(0);
  }
  take("GCAllocContext", "AllocBytes", thread_list.allocated);
  take("GCAllocContext", "AllocBytesLoh", thread_list.allocated_others);
  take("MethodTable", "EEClassOrCanonMT", fields.class_or_canonical);
  take("MethodTable", "AuxiliaryData", fields.auxiliary);
  take("EEClass", "FieldDescList", fields.descriptors);
  take("Module", "TypeDefToMethodTableMap", fields.type_map);
  if (const auto lock = descriptor.Offset("SyncBlock", "Lock")) sync_block.lock = *lock;
  for (const absl::string_view contract : {"Thread", "SyncBlock"}) {
    const std::optional<ContractVersion> version = descriptor.VersionOf(contract);
    if (version && version->number > 1) thread_list.known = false;
  }
}

}  // namespace clrsampler
