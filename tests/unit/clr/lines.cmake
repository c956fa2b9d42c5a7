clrsampler_test(line_memory_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/line_memory_test.cc DEPS clrsampler_clr_lines)
clrsampler_test(assembly_pdbs_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/assembly_pdbs_test.cc DEPS clrsampler_clr_lines)
