clrsampler_bench(picture_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/picture_bench.cc DEPS clrsampler_output)
