# Which .NET runtime a process holds, and what is known of its version.
clrsampler_library(clr_runtime SOURCES runtime_facts.cc runtime_image.cc runtime_discovery.cc
  DEPS clrsampler_process clrsampler_formats_elf clrsampler_formats_pe absl::flat_hash_map absl::strings)
