clrsampler_fuzz(jitdump_fuzz SOURCES jitdump_fuzz.cc DEPS clrsampler_formats_jit
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/jitdump_fuzz)
clrsampler_fuzz(perf_map_fuzz SOURCES perf_map_fuzz.cc DEPS clrsampler_formats_jit
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/perf_map_fuzz)
clrsampler_fuzz(r2rmap_fuzz SOURCES r2rmap_fuzz.cc DEPS clrsampler_formats_jit
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/r2rmap_fuzz)
