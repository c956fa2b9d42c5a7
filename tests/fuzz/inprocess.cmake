clrsampler_fuzz(inprocess_ring_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/inprocess_ring_fuzz.cc
  DEPS clrsampler_formats_inprocess clrsampler_inprocess_ring CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/inprocess_ring_fuzz)
