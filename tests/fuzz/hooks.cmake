clrsampler_fuzz(hooks_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/hooks_fuzz.cc DEPS clrsampler_clr_hooks
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/hooks_fuzz)
clrsampler_fuzz(allocation_scan_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/allocation_scan_fuzz.cc DEPS clrsampler_clr_hooks
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/allocation_scan_fuzz)
