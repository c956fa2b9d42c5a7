clrsampler_bench(formats_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/formats_bench.cc DEPS clrsampler_output)
