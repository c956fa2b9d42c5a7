#include "clr/memory/runtime_layout.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// The values that differ from the defaults of the header.
void Set8(RuntimeLayout& layout) {
  layout.thread_list.next = 232;
  layout.thread_list.os_id = 424;
  layout.thread_list.blocking_item = 1192;
  layout.thread_list.locals = std::nullopt;
  layout.thread_list.allocation_context = 88;
  layout.fields.type_map = 752;
  layout.fields.local_module = 1224;
  layout.instantiated_method = {.arguments = 16, .count = 26};
  layout.dynamic_method_name = 24;
  layout.loader_allocator_number = 2136;
  layout.method_table.rid_in_flags2 = false;
  layout.method_table.collectible = 0x10000000;
  layout.module.assembly_file = 272;
  layout.module.flags = 280;
  layout.module.r2r_info = 1152;
}

void Set9(RuntimeLayout& layout, bool is_arm64) {
  layout.thread_list.blocking_item = is_arm64 ? 1072 : 1032;
  layout.thread_list.allocation_context = 0;
  layout.fields.type_map = 624;
  layout.method_desc.code_data = 8;
  layout.module.assembly_file = 280;
  layout.module.base = 288;
  layout.module.flags = 296;
  layout.module.r2r_info = 984;
  layout.module.dynamic_metadata = 1120;
  layout.loader_allocator_number = 2456;
  // A lock inside of a structure, pthread_mutex_t, has 48 bytes and not 40.
  if (is_arm64) {
    layout.module = {.assembly_file = 288, .base = 296, .flags = 304, .r2r_info = 1016, .dynamic_metadata = 1152};
    layout.r2r_info.entry_points = 440;
    layout.loader_allocator_number = 2488;
  }
}

// The values that 8 and 9 have in common.
void SetBefore10(RuntimeLayout& layout) {
  layout.nibble_map = NibbleMapVersion::k1;
  layout.thread_list.leads_to_threads = false;
  layout.thread_list.first = 160;
  layout.pe_image.flat = 112;
  layout.pe_image.loaded = 120;
  layout.r2r_info.entry_points = 432;
}

void Set10(RuntimeLayout& layout, bool is_arm64) {
  layout.nibble_map = NibbleMapVersion::k2;
  layout.method_desc.code_data = 8;
  layout.module.base = 224;
  layout.module.dynamic_metadata = 840;
  layout.loader_allocator_number = 1856;
  layout.thread_list.leads_to_threads = layout.major >= 11;
  if (layout.major == 10) layout.thread_list.blocking_item = is_arm64 ? 712 : 672;
  if (layout.major >= 11) {
    layout.thread_list.os_id = 224;
    layout.sync_block.lock = 0;
    layout.thread_list.locks_have_os_ids = false;
    layout.pe_layout = {.base = 16, .size = 24, .flags = 28};
    layout.r2r_info.entry_points = 376;
    layout.loader_allocator_number = 1768;
  }
}

}  // namespace

absl::StatusOr<RuntimeLayout> RuntimeLayout::ForMajor(uint32_t major, ElfMachine machine, bool try_newer) {
  const bool unverified = try_newer && (major == 0 || major > kNewestKnownMajor);
  if (unverified) major = kNewestKnownMajor;
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
  layout.unverified = unverified;
  layout.machine = machine;
  if (is_arm64) layout.runtime_function = {.bytes = 8, .unwind_data = 4, .has_end = false};
  layout.described = generation->described;
  layout.debug_info = generation->debug_info;
  if (major >= 10) {
    Set10(layout, is_arm64);
  } else {
    SetBefore10(layout);
    major == 9 ? Set9(layout, is_arm64) : Set8(layout);
  }
  return layout;
}

}  // namespace clrsampler
