if(TARGET clrsampler_export)
  clrsampler_fuzz(query_fuzz
    SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/query_fuzz.cc
    DEPS clrsampler_export
    CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/query)
endif()
