clrsampler_fuzz(profile_reader_fuzz
  SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/profile_reader_fuzz.cc
  DEPS clrsampler_output
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/profile_reader_fuzz)
