# Unwind data of managed code: of precompiled images, and of what the JIT compiler made.
clrsampler_library(unwind_data_managed SOURCES managed_functions.cc r2r_unwind_data.cc jit_unwind_data.cc arm64_jit_code.cc
  DEPS clrsampler_os clrsampler_process clrsampler_symbols_frames clrsampler_unwind clrsampler_clr_r2r clrsampler_clr_memory
       clrsampler_formats_pe clrsampler_formats_unwind absl::btree absl::flat_hash_map absl::flat_hash_set)
