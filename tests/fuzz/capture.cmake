clrsampler_fuzz(side_band_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/side_band_fuzz.cc DEPS clrsampler_capture
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/side_band_fuzz)
