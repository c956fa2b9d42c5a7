clrsampler_fuzz(runtime_events_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/runtime_events_fuzz.cc DEPS clrsampler_profile
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/runtime_events_fuzz)
