clrsampler_fuzz(demangle_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/demangle_fuzz.cc DEPS clrsampler_symbols_elf
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/demangle_fuzz)
