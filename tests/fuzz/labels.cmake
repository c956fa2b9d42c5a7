clrsampler_fuzz(process_context_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/process_context_fuzz.cc DEPS clrsampler_formats_labels
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/process_context_fuzz)
