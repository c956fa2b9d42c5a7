# Opened at run time: only the headers of elfutils are needed here.
clrsampler_library(symbols_native_lines
  SOURCES native_lines/compiler_options.cc native_lines/debug_file_view.cc native_lines/debug_sections.cc native_lines/dwarf_lines.cc native_lines/line_answers.cc native_lines/line_process.cc
          native_lines/line_reader.cc native_lines/line_wire.cc native_lines/native_lines.cc
  DEPS clrsampler_os clrsampler_sandbox clrsampler_process clrsampler_symbols_frames clrsampler_symbols_elf clrsampler_formats_elf clrsampler_formats_names
       absl::flat_hash_map absl::strings ${CMAKE_DL_LIBS})
if(NOT CLRSAMPLER_STATIC)
  target_compile_definitions(clrsampler_symbols_native_lines PRIVATE CLRSAMPLER_HAVE_LIBDW)
  target_sources(clrsampler_symbols_native_lines PRIVATE native_lines/lines_by_tables.cc native_lines/lines_by_units.cc)
endif()
