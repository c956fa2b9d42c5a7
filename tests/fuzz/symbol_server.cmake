clrsampler_fuzz(symbol_server_fuzz
  SOURCES ${PROJECT_SOURCE_DIR}/tests/fuzz/symbol_server_fuzz.cc
  DEPS clrsampler_symbol_server
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/symbol_server_fuzz)
