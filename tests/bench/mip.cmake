clrsampler_bench(mip_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/mip_bench.cc DEPS clrsampler_formats_mip)
