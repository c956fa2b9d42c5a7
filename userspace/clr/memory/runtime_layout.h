// Where the fields are in CoreCLR's own structures, for the runtime of one process.
//
// Offsets are bytes, for 64-bit runtimes. The base tables are measured: on 8.0.30, 9.0.19, 10.0.12, 10.0.14 and 11.0.0
// (x64), each by naming thousands of addresses and comparing with the debugger's data access library. On 9.0.23,
// 10.0.15 and 11.0.0 (arm64) they are compared with the runtime's perf map and jitdump. .NET 9 and newer also publish a
// part of them as a contract descriptor (formats/runtime/contract_descriptor.h), whose word is taken where it speaks,
// so that a newer runtime with the same contract versions works. Facts that nobody vouches for are checked before they
// are trusted (runtime_self_test.h).
#ifndef CLRSAMPLER_CLR_MEMORY_RUNTIME_LAYOUT_H_
#define CLRSAMPLER_CLR_MEMORY_RUNTIME_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/runtime_generations.h"
#include "formats/elf/elf_image.h"
#include "formats/runtime/contract_descriptor.h"
#include "formats/runtime/nibble_map.h"

namespace clrsampler {

struct RuntimeLayout {
  uint32_t major = 0;
  bool unverified = false;  // of a runtime that nobody has measured; `major` is that of the newest known one
  ElfMachine machine = ElfMachine::kX64;
  DescribedLayout described = DescribedLayout::kNot;
  NibbleMapVersion nibble_map = NibbleMapVersion::k1;
  DebugInfoFormat debug_info = DebugInfoFormat::kNet8;

  struct RangeFragment {
    uint32_t next = 0, begin = 8, end = 16, section = 24;
    static constexpr uint32_t kBytes = 32;
  } range_fragment;
  struct RangeSection {
    uint32_t begin = 0, end = 8, flags = 16, jit_manager = 24, r2r_module = 32, heap_list = 40, range_list = 48;
    static constexpr uint32_t kBytes = 72;
  } range_section;
  uint32_t range_list_kind = 288;  // CodeRangeMapRangeList: u32
  struct CodeHeap {
    uint32_t start = 16, end = 24, map_base = 32, header_map = 40, loader_allocator = 64;
    static constexpr uint32_t kBytes = 48;  // without the last one
  } code_heap;
  // In a LoaderAllocator: its number. The runtime counts them and gives no number twice. Measured as the one word that
  // is small and another one in each of them.
  uint32_t loader_allocator_number = 0;
  struct CodeHeader {
    uint32_t method_desc = 24, unwind_count = 32, unwinds = 36;
  } code_header;
  // RUNTIME_FUNCTION, of a method's body and of each of its funclets.
  struct RuntimeFunction {
    uint32_t bytes = 12, unwind_data = 8;
    bool has_end = true;  // at 4; else the first word of its unwind data tells its length
  } runtime_function;
  struct MethodDesc {
    uint32_t flags3 = 0, chunk_index = 2, slot = 4, flags = 6;
    std::optional<uint32_t> code_data;      // since 9
    static constexpr uint32_t kBytes = 48;  // enough for all kinds that are read
  } method_desc;
  struct MethodDescChunk {
    uint32_t method_table = 0, size = 16, token_range = 18, bytes = 24;
  } method_desc_chunk;
  uint32_t token_remainder_bits = 12;
  struct InstantiatedMethod {
    uint32_t arguments = 24, count = 34;
  } instantiated_method;
  uint32_t dynamic_method_name = 32;
  // Since 11: what follows the MethodDesc of an async method, behind optional slots.
  struct AsyncMethod {
    uint32_t method_bytes = 0, instantiated_bytes = 0;         // of the two kinds of MethodDesc that have it
    uint32_t own_slot = 0, implementation = 0, code_slot = 0;  // bytes of what may stand before it
    uint32_t flags = 0;
  };
  std::optional<AsyncMethod> async_method;
  struct MethodTable {
    uint32_t flags = 0, base_size = 4, flags2 = 8, virtuals = 12, module = 24, arguments = 48;
    bool rid_in_flags2 = true;  // bits 8 to 31; before 9: the u16 at byte 10
    // A bit of the flags: the type can be freed. src/coreclr/vm/methodtable.h.
    uint32_t collectible = 0x00200000;
    static constexpr uint32_t kBytes = 64;

    // By the word at `flags2`. 0: none, or before 9 a row above 65,534, which stands elsewhere
    // (METHODTABLE_TOKEN_OVERFLOW).
    uint32_t TypeDefRow(uint32_t word) const {
      constexpr uint32_t kOverflow = 0xFFFF;
      if (rid_in_flags2) return word >> 8;
      return word >> 16 == kOverflow ? 0 : word >> 16;
    }
  } method_table;
  struct TypeDesc {
    uint32_t argument = 16, variable_module = 16, variable_token = 40, function_count = 24, function_types = 32;
    static constexpr uint32_t kBytes = 48;
  } type_desc;
  struct Module {
    uint32_t assembly_file = 216;  // PEAssembly*
    std::optional<uint32_t> base;
    uint32_t flags = 232;  // u32, m_dwTransientFlags
    uint32_t r2r_info = 704;
    std::optional<uint32_t> dynamic_metadata;
  } module;
  uint32_t pe_assembly_image = 8;
  struct PeImageFields {
    uint32_t flat = 120, loaded = 128;
  } pe_image;
  struct PeLayout {
    uint32_t base = 8, size = 16, flags = 20;
    static constexpr uint32_t kBytes = 32;
  } pe_layout;
  struct R2rInfo {
    uint32_t module = 0, header = 16, composite = 40, functions = 80, function_count = 88, entry_points = 360;
    static constexpr uint32_t kBytes = 96;
  } r2r_info;
  uint32_t hash_map_buckets = 16;
  struct VersionState {
    uint32_t first_node = 16;
  } version_state;
  struct VersionNode {
    uint32_t code = 0, method_desc = 8, next = 24, tier = 36;
    static constexpr uint32_t kBytes = 56;
  } version_node;
  // The runtime's list of its threads, and what each says of the monitor that it waits for.
  struct ThreadList {
    bool known = true;
    bool locks_have_os_ids = true;  // System.Threading.Lock._owningThreadId; since 11 it is the managed one
    uint32_t first = 88;            // in the ThreadStore
    bool leads_to_threads = true;   // each link is the address of a Thread; else that of the `next` in it
    uint32_t next = 112, managed_id = 16, os_id = 296;
    // The thread's allocation context is in the structure that `locals` points to, or in the Thread itself where there
    // is no such field.
    std::optional<uint32_t> locals = 32;
    uint32_t allocation_context = 8;
    // In it: how much it has been given so far, of small objects and of others.
    uint32_t allocated = 16, allocated_others = 24;
    // DebugBlockingItem of the innermost monitor, on the thread's stack. Absent: no such field.
    std::optional<uint32_t> blocking_item;
  } thread_list;
  // SyncBlock: up to 10 it begins with the monitor itself (AwareLock); since 11 it has a handle of a
  // System.Threading.Lock.
  struct SyncBlock {
    uint32_t state = 0, recursion = 4, owner_os_id = 16, table_index = 28;
    std::optional<uint32_t> lock;
  } sync_block;
  // Fields of classes. FieldDesc: MethodTable, then token and flags, then offset; it has not changed since 8.
  struct Fields {
    uint32_t class_or_canonical = 40, auxiliary = 32;  // MethodTable
    uint32_t descriptors = 24;                         // EEClass
    uint32_t type_map = 416;                           // Module: LookupMap from TypeDef to MethodTable
    // 8: Module, and what it leads to. Newer ones keep static fields behind `auxiliary`.
    std::optional<uint32_t> local_module;
    uint32_t local_module_objects = 32;
  } fields;
  // Entries of g_dacTable that hold the addresses of the runtime's variables, where no descriptor tells them.
  struct Variables {
    uint32_t thread_store = 16, object_type = 40, sync_table = 80;
  } variables;
  // 8 keeps version states in a hash table of the AppDomain, whose address is entry `app_domain_entry` of g_dacTable.
  struct VersionTable {
    uint32_t app_domain_entry = 21, table = 2520;
  } version_table;

  // Unimplemented: a major version that nothing is known about on this machine. `try_newer`: that of the newest known
  // one for those that are newer.
  static absl::StatusOr<RuntimeLayout> ForMajor(uint32_t major, ElfMachine machine, bool try_newer = false);

  // Takes the descriptor's word for what it names and appends a line to `differences` for each field that the table had
  // elsewhere. FailedPrecondition: a contract in a version that this reader does not speak.
  absl::Status Overlay(const ContractDescriptor& descriptor, std::vector<std::string>& differences);

 private:
  void OverlayThreads(const ContractDescriptor& descriptor);
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_RUNTIME_LAYOUT_H_
