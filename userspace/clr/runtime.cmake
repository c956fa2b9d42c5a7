clrsampler_library(clr_runtime SOURCES runtime_version.cc
  DEPS clrsampler_process clrsampler_formats_elf absl::flat_hash_map absl::strings)
