if(NOT CLRSAMPLER_STATIC)
  clrsampler_fuzz(query_fuzz
    SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/query_fuzz.cc
    DEPS clrsampler_export
    CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/query)
  clrsampler_fuzz(http_head_fuzz
    SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/http_head_fuzz.cc
    DEPS clrsampler_export
    CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/http_head)
  clrsampler_fuzz(otlp_answer_fuzz
    SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/otlp_answer_fuzz.cc
    DEPS clrsampler_export
    CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/otlp_answer)
endif()
