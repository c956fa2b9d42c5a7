clrsampler_fuzz(picture_fuzz
  SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/picture_fuzz.cc
  DEPS clrsampler_output
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/picture_fuzz)
