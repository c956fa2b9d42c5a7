clrsampler_fuzz(pe_fuzz
  SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/pe_fuzz.cc
  DEPS clrsampler_formats_pe
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/pe_fuzz)
