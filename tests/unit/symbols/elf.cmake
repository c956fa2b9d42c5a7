clrsampler_test(elf_symbols_source_test
  SOURCES elf_symbols_source_test.cc demangle_test.cc kernel_symbols_test.cc
  DEPS clrsampler_symbols_elf)
if(TARGET elf_symbols_source_test)
  add_dependencies(elf_symbols_source_test elf_fixtures)
  target_compile_definitions(elf_symbols_source_test PRIVATE ELF_FIXTURES="${CMAKE_BINARY_DIR}/elf_fixtures")
endif()
# bcc's symbol look-up as an independent judge. Only tests and benchmarks may link it: it brings LLVM with it.
find_library(BCC_LIBRARY bcc)
if(BCC_LIBRARY)
  clrsampler_test(elf_bcc_oracle_test SOURCES elf_bcc_oracle_test.cc
    DEPS clrsampler_formats_elf clrsampler_os ${BCC_LIBRARY} ${CMAKE_DL_LIBS})
endif()
