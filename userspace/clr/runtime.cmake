# The .NET runtime that a process holds, and what is known of its version.
clrsampler_library(clr_runtime SOURCES runtime_facts.cc runtime_image.cc runtime_discovery.cc emulated_code.cc
  DEPS clrsampler_process clrsampler_symbols_frames clrsampler_formats_elf clrsampler_formats_pe clrsampler_formats_proc absl::flat_hash_map absl::strings)
