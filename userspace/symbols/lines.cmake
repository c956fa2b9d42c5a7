# Opened at run time: only the headers of elfutils are needed here.
clrsampler_library(symbols_lines SOURCES source_lines.cc
  DEPS clrsampler_os clrsampler_formats_elf absl::strings ${CMAKE_DL_LIBS})
if(NOT CLRSAMPLER_STATIC)
  target_compile_definitions(clrsampler_symbols_lines PRIVATE CLRSAMPLER_HAVE_LIBDW)
endif()
