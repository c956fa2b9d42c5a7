clrsampler_fuzz(container_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/container_fuzz.cc DEPS clrsampler_process
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/container_fuzz)
