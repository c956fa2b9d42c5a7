# Names of native and kernel code.

# libstdc++ has a demangler that can be stopped when its output grows too long (demangle.cc), but exports it only from the
# static archive. Its object file stands alone, so it is taken from there; the rest of libstdc++ stays as it is linked.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a
  OUTPUT_VARIABLE libstdcxx_archive OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT IS_ABSOLUTE "${libstdcxx_archive}")
  message(FATAL_ERROR "libstdc++.a is missing: install libstdc++-12-dev (Debian) or libstdc++-static (Fedora)")
endif()
execute_process(COMMAND ${CMAKE_AR} x ${libstdcxx_archive} cp-demangle.o
  WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} COMMAND_ERROR_IS_FATAL ANY)
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/cp-demangle.o PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)

clrsampler_library(symbols_elf
  SOURCES debug_file.cc demangle.cc elf_symbols_source.cc kernel_symbols.cc ${CMAKE_CURRENT_BINARY_DIR}/cp-demangle.o
  DEPS clrsampler_symbols_frames clrsampler_process clrsampler_symbol_server clrsampler_formats_elf clrsampler_formats_names clrsampler_formats_proc clrsampler_formats_runtime_functions clrsampler_os
       absl::flat_hash_map absl::strings PkgConfig::ZLIB)
