# Lines of managed code, from portable PDBs.
clrsampler_library(clr_lines SOURCES ${CMAKE_CURRENT_LIST_DIR}/lines/assembly_lines.cc ${CMAKE_CURRENT_LIST_DIR}/lines/assembly_pdbs.cc
  ${CMAKE_CURRENT_LIST_DIR}/lines/assembly_slot.cc ${CMAKE_CURRENT_LIST_DIR}/lines/line_memory.cc ${CMAKE_CURRENT_LIST_DIR}/lines/method_lines.cc
  ${CMAKE_CURRENT_LIST_DIR}/lines/pdb_bytes.cc
  DEPS clrsampler_os clrsampler_process clrsampler_symbol_server clrsampler_symbols_frames clrsampler_formats_pe clrsampler_formats_pdb clrsampler_formats_il_map
       absl::flat_hash_map absl::flat_hash_set absl::strings)
