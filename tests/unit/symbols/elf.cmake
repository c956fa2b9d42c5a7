clrsampler_test(elf_symbols_source_test
  SOURCES elf_symbols_source_test.cc debug_file_test.cc demangle_test.cc kernel_symbols_test.cc
  DEPS clrsampler_symbols_elf)
if(TARGET elf_symbols_source_test)
  add_dependencies(elf_symbols_source_test elf_fixtures)
endif()
# bcc's symbol look-up as an independent judge.
if(BCC_LIBRARY)
  clrsampler_test(elf_bcc_oracle_test SOURCES elf_bcc_oracle_test.cc
    DEPS clrsampler_formats_elf clrsampler_os ${BCC_LIBRARY} ${CMAKE_DL_LIBS})
endif()
