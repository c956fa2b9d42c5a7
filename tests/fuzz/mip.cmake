foreach(target mip_profile_fuzz mip_map_fuzz mip_raw_fuzz mip_document_fuzz)
  clrsampler_fuzz(${target}
    SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/${target}.cc
    DEPS clrsampler_formats_mip
    CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${target})
endforeach()
