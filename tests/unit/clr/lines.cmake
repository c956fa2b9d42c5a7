clrsampler_test(assembly_pdbs_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/assembly_pdbs_test.cc DEPS clrsampler_clr_lines)
