clrsampler_library(clr_r2r SOURCES ${CMAKE_CURRENT_LIST_DIR}/r2r_methods.cc ${CMAKE_CURRENT_LIST_DIR}/r2r_files.cc ${CMAKE_CURRENT_LIST_DIR}/r2r_assemblies.cc ${CMAKE_CURRENT_LIST_DIR}/r2r_map_file.cc ${CMAKE_CURRENT_LIST_DIR}/r2r_map_content.cc
  ${CMAKE_CURRENT_LIST_DIR}/r2r_memory_images.cc ${CMAKE_CURRENT_LIST_DIR}/r2r_unwind_parts.cc
  DEPS clrsampler_os clrsampler_process clrsampler_symbol_server clrsampler_symbols_frames clrsampler_clr_lines clrsampler_formats_pe clrsampler_formats_proc
       clrsampler_formats_jit clrsampler_formats_names clrsampler_formats_unwind
       absl::flat_hash_map absl::flat_hash_set absl::strings)
