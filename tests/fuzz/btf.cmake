clrsampler_fuzz(btf_fuzz SOURCES btf_fuzz.cc DEPS clrsampler_formats_btf CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/btf_fuzz)
