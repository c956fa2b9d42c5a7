clrsampler_bench(hooks_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/hooks_bench.cc DEPS clrsampler_clr_hooks clrsampler_os)
