clrsampler_bench(names_bench
  SOURCES ${PROJECT_SOURCE_DIR}/tests/bench/names_bench.cc
  DEPS clrsampler_formats_names)
