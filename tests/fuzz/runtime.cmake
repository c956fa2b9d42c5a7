clrsampler_fuzz(diagnostics_message_fuzz SOURCES diagnostics_message_fuzz.cc DEPS clrsampler_formats_runtime
  CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/diagnostics_message_fuzz)
