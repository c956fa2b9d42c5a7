clrsampler_test(native_lines_test
  SOURCES native_lines/compiler_options_test.cc native_lines/debug_sections_test.cc native_lines/dwarf_lines_test.cc native_lines/line_answers_test.cc
          native_lines/line_process_test.cc native_lines/line_wire_test.cc native_lines/native_lines_test.cc
  DEPS clrsampler_symbols_native_lines)
if(TARGET native_lines_test)
  add_dependencies(native_lines_test elf_fixtures)
endif()
