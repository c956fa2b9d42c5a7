clrsampler_fuzz(unwind_info_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/unwind_info_fuzz.cc DEPS clrsampler_unwind_data_managed
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/unwind_info_fuzz)
clrsampler_fuzz(arm64_unwind_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/arm64_unwind_fuzz.cc DEPS clrsampler_formats_unwind
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/arm64_unwind_fuzz)
clrsampler_fuzz(stack_unwinder_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/stack_unwinder_fuzz.cc DEPS clrsampler_unwind
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/stack_unwinder_fuzz)
clrsampler_fuzz(raw_stack_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/raw_stack_fuzz.cc DEPS clrsampler_unwind
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/raw_stack_fuzz)
