clrsampler_fuzz(demangle_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/demangle_fuzz.cc DEPS clrsampler_symbols_elf
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/demangle_fuzz)
clrsampler_fuzz(line_wire_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/line_wire_fuzz.cc DEPS clrsampler_symbols_native_lines
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/line_wire_fuzz)
