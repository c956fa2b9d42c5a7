clrsampler_fuzz(diagnostics_message_fuzz SOURCES diagnostics_message_fuzz.cc DEPS clrsampler_formats_runtime
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/diagnostics_message_fuzz)
clrsampler_fuzz(runtime_functions_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/runtime_functions_fuzz.cc DEPS clrsampler_formats_runtime_functions
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/runtime_functions_fuzz)
clrsampler_fuzz(il_map_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/il_map_fuzz.cc DEPS clrsampler_formats_il_map
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/il_map_fuzz)
