clrsampler_bench(pipeline_bench SOURCES ${CMAKE_CURRENT_LIST_DIR}/pipeline_bench.cc DEPS clrsampler_pipeline clrsampler_output)
