if(BCC_LIBRARY)
  clrsampler_bench(elf_symbols_bench SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/elf_symbols_bench.cc
    DEPS clrsampler_symbols_elf ${BCC_LIBRARY} ${CMAKE_DL_LIBS})
endif()
