clrsampler_bench(jit_bench SOURCES jit_bench.cc DEPS clrsampler_clr_jit)
# bcc's perf-map reader to compare with. Only tests and benchmarks may link it: it brings LLVM with it.
find_library(BCC_LIBRARY bcc)
if(BCC_LIBRARY AND TARGET jit_bench)
  target_link_libraries(jit_bench PRIVATE ${BCC_LIBRARY} ${CMAKE_DL_LIBS})
  target_compile_definitions(jit_bench PRIVATE CLRSAMPLER_HAS_BCC)
endif()
