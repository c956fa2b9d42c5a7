clrsampler_bench(pe_bench
  SOURCES ${PROJECT_SOURCE_DIR}/tests/bench/pe_bench.cc
  DEPS clrsampler_formats_pe clrsampler_os)
