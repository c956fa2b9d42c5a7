clrsampler_fuzz(lease_record_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/lease_record_fuzz.cc DEPS clrsampler_clr_perf_map_lease
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/lease_record_fuzz)
