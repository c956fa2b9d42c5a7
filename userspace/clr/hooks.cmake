# Where probes go in a runtime.
clrsampler_library(clr_hooks
  SOURCES hooks/code_scan_x64.cc hooks/code_scan_arm64.cc hooks/function_table.cc hooks/image_code.cc hooks/jit_search.cc
          hooks/suspend_search.cc hooks/gc_search.cc hooks/allocation_scan_x64.cc hooks/allocation_scan_arm64.cc hooks/allocation_search.cc
          hooks/exception_scan_x64.cc hooks/exception_search.cc
          hooks/symbol_search.cc hooks/hook_locator.cc hooks/jit_flags.cc
  DEPS clrsampler_clr_runtime clrsampler_formats_elf clrsampler_formats_names clrsampler_formats_runtime_functions clrsampler_formats_x64 absl::flat_hash_map absl::str_format absl::strings)
