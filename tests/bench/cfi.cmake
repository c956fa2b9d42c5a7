clrsampler_bench(cfi_bench SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/cfi_bench.cc DEPS clrsampler_formats_elf clrsampler_os)
