#include "clr/memory/runtime_layout.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// Contracts whose structures are read here, with the versions whose algorithms are written here: the newest of those
// that are numbers (9 and 10) and of those that are texts (since 11).
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

}  // namespace

absl::StatusOr<RuntimeLayout> RuntimeLayout::ForMajor(uint32_t major, ElfMachine machine, bool try_newer) {
  if (try_newer && major > kNewestKnownMajor) major = kNewestKnownMajor;
  if (major < kOldestKnownMajor) {
    return absl::UnimplementedError(
        absl::StrCat(".NET ", major, " can't be read: ", kOldestKnownMajor, " is the oldest"));
  }
  const RuntimeGeneration* generation = RuntimeGenerationOf(major);
  if (generation == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(".NET ", major, " is not known: ", kNewestKnownMajor, " is the newest that is"));
  }
  const bool is_arm64 = machine == ElfMachine::kArm64;
  // No runtime of 8 with a class library is to be had for arm64.
  if (is_arm64 && major == 8) {
    return absl::UnimplementedError("the structures of .NET 8 were never measured on arm64");
  }
  RuntimeLayout layout;
  layout.major = major;
  layout.machine = machine;
  if (is_arm64) layout.runtime_function = {.bytes = 8, .unwind_data = 4, .has_end = false};
  layout.described = generation->described;
  layout.debug_info = generation->debug_info;
  if (major >= 10) {
    layout.nibble_map = NibbleMapVersion::k2;
    layout.method_desc.code_data = 8;
    layout.module.base = 224;
    layout.module.dynamic_metadata = 840;
    layout.loader_allocator_number = 1856;
    layout.thread_list.leads_to_threads = major >= 11;
    if (major == 10 && !is_arm64) layout.thread_list.blocking_item = 672;
    if (major >= 11) {
      layout.thread_list.os_id = 224;
      layout.sync_block.lock = 0;
      layout.thread_list.locks_have_os_ids = false;
      layout.pe_layout = {.base = 16, .size = 24, .flags = 28};
      layout.r2r_info.entry_points = 376;
      layout.loader_allocator_number = 1768;
    }
    return layout;
  }
  layout.nibble_map = NibbleMapVersion::k1;
  layout.thread_list.leads_to_threads = false;
  layout.thread_list.first = 160;
  layout.pe_image.flat = 112;
  layout.pe_image.loaded = 120;
  layout.r2r_info.entry_points = 432;
  if (major == 9) {
    if (!is_arm64) layout.thread_list.blocking_item = 1032;
    layout.fields.type_map = 624;
    layout.method_desc.code_data = 8;
    layout.module.assembly_file = 280;
    layout.module.base = 288;
    layout.module.r2r_info = 984;
    layout.module.dynamic_metadata = 1120;
    layout.loader_allocator_number = 2456;
    // A lock inside of a structure, pthread_mutex_t, has 48 bytes and not 40.
    if (is_arm64) {
      layout.module = {.assembly_file = 288, .base = 296, .r2r_info = 1016, .dynamic_metadata = 1152};
      layout.r2r_info.entry_points = 440;
      layout.loader_allocator_number = 2488;
    }
    return layout;
  }
  layout.thread_list.next = 232;
  layout.thread_list.os_id = 424;
  layout.thread_list.blocking_item = 1192;
  layout.fields.type_map = 752;
  layout.fields.local_module = 1224;
  layout.instantiated_method = {.arguments = 16, .count = 26};
  layout.dynamic_method_name = 24;
  layout.loader_allocator_number = 2136;
  layout.method_table.rid_in_flags2 = false;
  layout.module.assembly_file = 272;
  layout.module.r2r_info = 1152;
  return layout;
}

absl::Status RuntimeLayout::Overlay(const ContractDescriptor& descriptor, std::vector<std::string>& differences) {
  for (const KnownContract& known : kContracts) {
    const std::optional<ContractVersion> version = descriptor.VersionOf(known.name);
    if (!version) {
      if (described == DescribedLayout::kWhole) {
        return absl::FailedPreconditionError(absl::StrCat("it does not describe its contract ", known.name));
      }
      continue;
    }
    const uint32_t newest = version->is_text ? known.newest_text : known.newest_number;
    if (version->number < 1 || version->number > newest) {
      return absl::FailedPreconditionError(absl::StrCat("its contract ", known.name, " has version ", version->Text(),
                                                        ", known is ",
                                                        ContractVersion{version->is_text, newest}.Text()));
    }
  }
  if (const auto version = descriptor.VersionOf("ExecutionManager")) nibble_map = NibbleMapOf(*version);
  std::string absent;
  auto set = [&](absl::string_view type, absl::string_view field, auto& value) {
    const std::optional<uint32_t> offset = descriptor.Offset(type, field);
    if (!offset) {
      if (absent.empty()) absent = absl::StrCat(type, ".", field);
      return;
    }
    if (value != *offset) {
      differences.push_back(absl::StrCat(type, ".", field, " is at ", *offset));
      value = *offset;
    }
  };
  set("RangeSectionFragment", "Next", range_fragment.next);
  set("RangeSectionFragment", "RangeBegin", range_fragment.begin);
  set("RangeSectionFragment", "RangeEndOpen", range_fragment.end);
  set("RangeSectionFragment", "RangeSection", range_fragment.section);
  set("RangeSection", "RangeBegin", range_section.begin);
  set("RangeSection", "RangeEndOpen", range_section.end);
  set("RangeSection", "Flags", range_section.flags);
  set("RangeSection", "JitManager", range_section.jit_manager);
  set("RangeSection", "R2RModule", range_section.r2r_module);
  set("RangeSection", "HeapList", range_section.heap_list);
  set("CodeHeapListNode", "StartAddress", code_heap.start);
  set("CodeHeapListNode", "EndAddress", code_heap.end);
  set("CodeHeapListNode", "MapBase", code_heap.map_base);
  set("CodeHeapListNode", "HeaderMap", code_heap.header_map);
  set("RealCodeHeader", "MethodDesc", code_header.method_desc);
  set("RealCodeHeader", "NumUnwindInfos", code_header.unwind_count);
  set("RealCodeHeader", "UnwindInfos", code_header.unwinds);
  set("MethodDesc", "Flags3AndTokenRemainder", method_desc.flags3);
  set("MethodDesc", "ChunkIndex", method_desc.chunk_index);
  set("MethodDesc", "Slot", method_desc.slot);
  set("MethodDesc", "Flags", method_desc.flags);
  set("MethodDesc", "CodeData", method_desc.code_data);
  set("MethodDescChunk", "MethodTable", method_desc_chunk.method_table);
  set("MethodDescChunk", "Size", method_desc_chunk.size);
  set("MethodDescChunk", "FlagsAndTokenRange", method_desc_chunk.token_range);
  set("MethodDescChunk", "!", method_desc_chunk.bytes);
  set("InstantiatedMethodDesc", "PerInstInfo", instantiated_method.arguments);
  set("InstantiatedMethodDesc", "NumGenericArgs", instantiated_method.count);
  set("DynamicMethodDesc", "MethodName", dynamic_method_name);
  set("MethodTable", "MTFlags", method_table.flags);
  set("MethodTable", "BaseSize", method_table.base_size);
  set("MethodTable", "MTFlags2", method_table.flags2);
  set("MethodTable", "NumVirtuals", method_table.virtuals);
  set("MethodTable", "Module", method_table.module);
  set("MethodTable", "PerInstInfo", method_table.arguments);
  set("ParamTypeDesc", "TypeArg", type_desc.argument);
  set("TypeVarTypeDesc", "Module", type_desc.variable_module);
  set("TypeVarTypeDesc", "Token", type_desc.variable_token);
  set("FnPtrTypeDesc", "NumArgs", type_desc.function_count);
  set("FnPtrTypeDesc", "RetAndArgTypes", type_desc.function_types);
  set("Module", "PEAssembly", module.assembly_file);
  set("Module", "Base", module.base);
  set("Module", "ReadyToRunInfo", module.r2r_info);
  set("Module", "DynamicMetadata", module.dynamic_metadata);
  set("PEAssembly", "PEImage", pe_assembly_image);
  set("PEImage", "LoadedImageLayout", pe_image.loaded);
  set("PEImageLayout", "Base", pe_layout.base);
  set("PEImageLayout", "Size", pe_layout.size);
  set("PEImageLayout", "Flags", pe_layout.flags);
  set("ReadyToRunInfo", "ReadyToRunHeader", r2r_info.header);
  set("ReadyToRunInfo", "CompositeInfo", r2r_info.composite);
  set("ReadyToRunInfo", "RuntimeFunctions", r2r_info.functions);
  set("ReadyToRunInfo", "NumRuntimeFunctions", r2r_info.function_count);
  set("ReadyToRunInfo", "EntryPointToMethodDescMap", r2r_info.entry_points);
  set("HashMap", "Buckets", hash_map_buckets);
  set("MethodDescVersioningState", "NativeCodeVersionNode", version_state.first_node);
  set("NativeCodeVersionNode", "NativeCode", version_node.code);
  set("NativeCodeVersionNode", "MethodDesc", version_node.method_desc);
  set("NativeCodeVersionNode", "Next", version_node.next);
  OverlayThreads(descriptor);
  if (const auto bits = descriptor.Global("MethodDescTokenRemainderBitCount"); bits && *bits > 0 && *bits < 16) {
    token_remainder_bits = static_cast<uint32_t>(*bits);
  }
  if (described == DescribedLayout::kWhole && !absent.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("its contract descriptor does not say where ", absent, " is"));
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
  // Everything is read in blocks of fixed size; a field outside its block would be read as its neighbour's bytes.
  auto fits = [](uint32_t block, std::initializer_list<uint32_t> offsets) {
    return std::all_of(offsets.begin(), offsets.end(), [&](uint32_t at) { return at <= block - 8; });
  };
  const bool sound =
      fits(RangeFragment::kBytes,
           {range_fragment.next, range_fragment.begin, range_fragment.end, range_fragment.section}) &&
      fits(RangeSection::kBytes, {range_section.begin, range_section.end, range_section.flags,
                                  range_section.jit_manager, range_section.r2r_module, range_section.heap_list}) &&
      fits(CodeHeap::kBytes, {code_heap.start, code_heap.end, code_heap.map_base, code_heap.header_map}) &&
      fits(MethodDesc::kBytes, {method_desc.flags3, method_desc.chunk_index, method_desc.slot, method_desc.flags,
                                instantiated_method.arguments, instantiated_method.count, dynamic_method_name,
                                method_desc.code_data.value_or(0)}) &&
      fits(MethodTable::kBytes, {method_table.flags, method_table.base_size, method_table.flags2, method_table.virtuals,
                                 method_table.module, method_table.arguments}) &&
      fits(TypeDesc::kBytes,
           {type_desc.argument, type_desc.variable_module, type_desc.variable_token, type_desc.function_count}) &&
      fits(PeLayout::kBytes, {pe_layout.base, pe_layout.size}) && pe_layout.flags <= PeLayout::kBytes - 4 &&
      pe_layout.base + 8 <= pe_layout.flags && pe_layout.size + 4 <= pe_layout.flags &&
      fits(R2rInfo::kBytes, {r2r_info.header, r2r_info.composite, r2r_info.functions, r2r_info.function_count}) &&
      fits(VersionNode::kBytes, {version_node.code, version_node.method_desc, version_node.next}) &&
      method_desc_chunk.bytes == 24 && method_desc_chunk.size < 23 && method_desc_chunk.token_range < 23 &&
      method_desc_chunk.method_table == 0 && code_header.unwinds == 36 && code_header.method_desc == 24 &&
      code_header.unwind_count == 32;
  if (!sound) return absl::FailedPreconditionError("its structures are larger than the ones that are known");
  return absl::OkStatus();
}

// What names do not rest on: a runtime that says it otherwise is read all the same, without its threads.
void RuntimeLayout::OverlayThreads(const ContractDescriptor& descriptor) {
  const auto take = [&](absl::string_view type, absl::string_view field, uint32_t& value) {
    value = descriptor.Offset(type, field).value_or(value);
  };
  take("ThreadStore", "FirstThreadLink", thread_list.first);
  take("Thread", "LinkNext", thread_list.next);
  take("Thread", "Id", thread_list.managed_id);
  take("Thread", "OSId", thread_list.os_id);
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
