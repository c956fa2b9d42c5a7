clrsampler_fuzz(tape_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/tape_fuzz.cc DEPS clrsampler_tape
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/tape_fuzz)
