clrsampler_fuzz(cri_answer_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/cri_answer_fuzz.cc DEPS clrsampler_container_runtime
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/cri_answer_fuzz)
