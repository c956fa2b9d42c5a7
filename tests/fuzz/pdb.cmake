foreach(target portable_pdb_fuzz sequence_points_fuzz source_link_fuzz)
  clrsampler_fuzz(${target}
    SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/${target}.cc
    DEPS clrsampler_formats_pdb
    CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${target})
endforeach()
