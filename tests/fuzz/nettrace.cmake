clrsampler_fuzz(nettrace_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/nettrace_fuzz.cc DEPS clrsampler_formats_nettrace
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/nettrace_fuzz)
clrsampler_fuzz(clr_events_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/clr_events_fuzz.cc DEPS clrsampler_formats_nettrace
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/clr_events_fuzz)
