clrsampler_bench(managed_step_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/managed_step_bench.cc DEPS clrsampler_unwind)
clrsampler_bench(replay_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/replay_bench.cc DEPS clrsampler_pipeline)
