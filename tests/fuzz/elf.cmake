clrsampler_fuzz(elf_fuzz SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/elf_fuzz.cc DEPS clrsampler_formats_elf
  CORPUS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/elf_fuzz)
clrsampler_fuzz(proc_text_fuzz SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/proc_text_fuzz.cc DEPS clrsampler_formats_proc
  CORPUS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/proc_text_fuzz)
clrsampler_fuzz(cfi_fuzz SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/cfi_fuzz.cc DEPS clrsampler_formats_elf
  CORPUS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/cfi_fuzz)
clrsampler_fuzz(code_rows_fuzz SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/code_rows_fuzz.cc DEPS clrsampler_formats_elf clrsampler_formats_x64
  CORPUS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/code_rows_fuzz)
clrsampler_fuzz(line_sequences_fuzz SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/line_sequences_fuzz.cc DEPS clrsampler_formats_elf
  CORPUS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/line_sequences_fuzz)
