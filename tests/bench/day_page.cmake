clrsampler_bench(day_page SOURCES ${CMAKE_CURRENT_LIST_DIR}/day_page.cc DEPS clrsampler_output)
