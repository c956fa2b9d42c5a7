clrsampler_bench(store_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/store_bench.cc DEPS clrsampler_store)
