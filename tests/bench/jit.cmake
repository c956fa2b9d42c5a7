clrsampler_bench(jit_bench SOURCES jit_bench.cc DEPS clrsampler_clr_jit)
# bcc's perf-map reader to compare with.
if(BCC_LIBRARY)
  target_link_libraries(jit_bench PRIVATE ${BCC_LIBRARY} ${CMAKE_DL_LIBS})
  target_compile_definitions(jit_bench PRIVATE CLRSAMPLER_HAS_BCC)
endif()
