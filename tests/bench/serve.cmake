if(TARGET clrsampler_serve)
  clrsampler_bench(serve_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/serve_bench.cc DEPS clrsampler_serve)
endif()
