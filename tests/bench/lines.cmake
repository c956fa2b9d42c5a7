clrsampler_bench(lines_bench
  SOURCES ${PROJECT_SOURCE_DIR}/tests/bench/lines_bench.cc
  DEPS clrsampler_clr_lines PkgConfig::ZLIB)
