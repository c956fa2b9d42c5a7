clrsampler_fuzz(contract_descriptor_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/contract_descriptor_fuzz.cc DEPS clrsampler_formats_runtime
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/contract_descriptor_fuzz)
clrsampler_fuzz(nibble_map_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/nibble_map_fuzz.cc DEPS clrsampler_formats_runtime
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/nibble_map_fuzz)
clrsampler_fuzz(metadata_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/metadata_fuzz.cc DEPS clrsampler_formats_pe
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/metadata_fuzz)
clrsampler_fuzz(memory_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/memory_fuzz.cc DEPS clrsampler_clr_memory
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/memory_fuzz)
clrsampler_fuzz(stub_code_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/stub_code_fuzz.cc DEPS clrsampler_clr_memory
  CORPUS ${CMAKE_CURRENT_LIST_DIR}/corpus/stub_code_fuzz)
