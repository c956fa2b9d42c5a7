# Names read from the memory of the target's runtime.
clrsampler_library(clr_memory
  SOURCES memory/memory_probe.cc memory/runtime_layout.cc memory/runtime_layout_overlay.cc memory/code_ranges.cc memory/runtime_modules.cc memory/runtime_types.cc
          memory/runtime_self_test.cc memory/runtime_memory.cc memory/runtime_memory_self_test.cc memory/runtime_memory_tiers.cc memory/precompiled_methods.cc memory/quick_code.cc memory/runtime_threads.cc memory/allocated_bytes.cc memory/corelib_fields.cc memory/monitor_reader.cc memory/pool_reader.cc memory/target_images.cc memory/transient_heaps.cc memory/write_barriers.cc memory/stub_code.cc memory/stub_code_x64.cc memory/stub_code_arm64.cc memory/unlisted_code.cc
          memory/async_types.cc memory/runtime_types_of.cc memory/il_map_reader.cc memory/image_copy.cc memory/method_line_reader.cc memory/method_unwind_reader.cc memory/memory_methods.cc memory/memory_snapshots.cc memory/memory_attach.cc
  DEPS clrsampler_os clrsampler_process clrsampler_formats_elf clrsampler_formats_runtime clrsampler_formats_pe clrsampler_formats_names clrsampler_formats_unwind clrsampler_clr_runtime clrsampler_clr_lines
       clrsampler_symbols_frames absl::btree absl::flat_hash_map absl::flat_hash_set absl::strings)
