if(NOT CLRSAMPLER_STATIC)
  clrsampler_bench(serve_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/serve_bench.cc DEPS clrsampler_serve)
  clrsampler_bench(host_replay_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/host_replay_bench.cc DEPS clrsampler_serve)
endif()
