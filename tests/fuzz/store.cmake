clrsampler_fuzz(store_fuzz
  SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/store_fuzz.cc
  DEPS clrsampler_store
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/store_fuzz)
