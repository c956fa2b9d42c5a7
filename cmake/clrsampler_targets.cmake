# The four kinds of target. Every folder of userspace/ is one library that names exactly the folders it may include.

add_library(clrsampler_options INTERFACE)
target_include_directories(clrsampler_options INTERFACE ${PROJECT_SOURCE_DIR}/userspace ${PROJECT_SOURCE_DIR}/include)
target_compile_options(clrsampler_options INTERFACE -Wall -Wextra -Werror -Wshadow -Wvla -Wno-missing-field-initializers
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  -fno-omit-frame-pointer -fstack-protector-strong -pthread
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unused-private-field>)
target_compile_definitions(clrsampler_options INTERFACE _GNU_SOURCE
  $<$<AND:$<CONFIG:RelWithDebInfo>,$<NOT:$<BOOL:${CLRSAMPLER_SANITIZE}>>>:_FORTIFY_SOURCE=2>)
if(CLRSAMPLER_SANITIZE OR CLRSAMPLER_FUZZ)
  target_compile_options(clrsampler_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
    $<$<BOOL:${CLRSAMPLER_FUZZ}>:-fsanitize=fuzzer-no-link>)
  target_link_options(clrsampler_options INTERFACE -fsanitize=address,undefined)
endif()

# With CLRSAMPLER_PCH: what most files include, parsed once for the libraries and programs and once for the tests.
function(clrsampler_precompile target kind)
  if(NOT CLRSAMPLER_PCH)
    return()
  endif()
  if(NOT TARGET clrsampler_pch_${kind})
    # One of each language, since targets have both.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch_${kind}.cc CONTENT "")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch_${kind}.c CONTENT "typedef int empty;")
    add_library(clrsampler_pch_${kind} STATIC ${CMAKE_BINARY_DIR}/pch_${kind}.cc ${CMAKE_BINARY_DIR}/pch_${kind}.c)
    target_link_libraries(clrsampler_pch_${kind} PRIVATE clrsampler_options absl::btree absl::flat_hash_map absl::statusor absl::str_format)
    if(kind STREQUAL "tests")
      target_link_libraries(clrsampler_pch_${kind} PRIVATE GTest::gmock GTest::gtest)
      target_compile_options(clrsampler_pch_${kind} PRIVATE -O0 -g1 -U_FORTIFY_SOURCE)
    endif()
    target_precompile_headers(clrsampler_pch_${kind} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled_${kind}.h)
  endif()
  target_precompile_headers(${target} REUSE_FROM clrsampler_pch_${kind})
  # GCC 12 forgets that precompiled headers are the system's, and warns of what its optimiser makes of std::string there.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict>)
endfunction()

# clrsampler_library(NAME SOURCES ... [DEPS ...]): static library clrsampler_NAME. DEPS are target names.
function(clrsampler_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(clrsampler_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(clrsampler_${name} PUBLIC clrsampler_options ${ARG_DEPS})
  clrsampler_precompile(clrsampler_${name} code)
endfunction()

# clrsampler_test(NAME SOURCES ... [DEPS ...] [LABELS ...]): a GoogleTest program, one CTest test for the whole program.
function(clrsampler_test name)
  if(CMAKE_CROSSCOMPILING OR CLRSAMPLER_ONLY_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} $<TARGET_OBJECTS:clrsampler_test_main>)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest)
  target_compile_definitions(${name} PRIVATE CLRSAMPLER_TESTDATA="${PROJECT_SOURCE_DIR}/tests/testdata")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # What is tested is optimised; the optimiser's time on 100 files of assertions is a third of the build's.
  target_compile_options(${name} PRIVATE -O0 -g1 -U_FORTIFY_SOURCE)
  clrsampler_precompile(${name} tests)
  add_test(NAME ${name} COMMAND ${name})
  set(timeout 120)
  if(CLRSAMPLER_SANITIZE)
    set(timeout 900)  # ten to twenty times as long
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "unit;${ARG_LABELS}")
endfunction()

# clrsampler_fuzz(NAME SOURCES ... DEPS ... CORPUS dir): with CLRSAMPLER_FUZZ a libFuzzer program; otherwise the same
# target with a main that replays files, so that corpus and regressions run everywhere as a plain test.
function(clrsampler_fuzz name)
  if(CMAKE_CROSSCOMPILING OR NOT (CLRSAMPLER_FUZZ OR CLRSAMPLER_EXTRAS))
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  if(CLRSAMPLER_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
    set_property(GLOBAL APPEND PROPERTY CLRSAMPLER_FUZZ_TARGETS ${name})
    add_test(NAME ${name}_corpus COMMAND ${name} -runs=0 ${ARG_CORPUS})
  else()
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME ${name}_corpus COMMAND ${name} ${ARG_CORPUS})
  endif()
  set_tests_properties(${name}_corpus PROPERTIES TIMEOUT 60 LABELS "fuzz_corpus")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endfunction()

# clrsampler_bench(NAME SOURCES ... DEPS ...): a Google Benchmark program; never a test.
function(clrsampler_bench name)
  if(CMAKE_CROSSCOMPILING OR CLRSAMPLER_FUZZ OR CLRSAMPLER_SANITIZE OR NOT CLRSAMPLER_EXTRAS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endfunction()
