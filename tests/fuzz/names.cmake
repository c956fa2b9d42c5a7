clrsampler_fuzz(names_fuzz
  SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/names_fuzz.cc
  DEPS clrsampler_formats_names
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/names_fuzz)
