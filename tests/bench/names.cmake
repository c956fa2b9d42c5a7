clrsampler_bench(names_bench
  SOURCES ${PROJECT_SOURCE_DIR}/tests/bench/names_bench.cc
  DEPS clrsampler_formats_names)
if(TARGET names_bench)
  target_compile_definitions(names_bench PRIVATE CLRSAMPLER_TESTDATA="${PROJECT_SOURCE_DIR}/tests/testdata")
endif()
