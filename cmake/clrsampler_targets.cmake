# The four kinds of target. Each folder of userspace/ is a library or a few; the DEPS of a library are what it links.
#
# Most presets compile the sources of a target in batches (CMAKE_UNITY_BUILD, docs/contributing/building.md), so names in anonymous namespaces are
# unique in a target. Twins that share names, such as those for two machines, have the property SKIP_UNITY_BUILD_INCLUSION.

# Precompiled headers are compiled with these, too.
set(clrsampler_code_options -fno-omit-frame-pointer -fstack-protector-strong -pthread)
set(clrsampler_definitions -D_GNU_SOURCE)
if(CLRSAMPLER_SANITIZE OR CLRSAMPLER_FUZZ)
  # AddressSanitizer reports what null and object-size would, at the access itself. Without them clang takes 15 % less time.
  list(APPEND clrsampler_code_options -fsanitize=address,undefined -fno-sanitize=null,object-size -fno-sanitize-recover=all)
endif()
if(CLRSAMPLER_FUZZ)
  list(APPEND clrsampler_code_options -fsanitize=fuzzer-no-link)
endif()
if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo AND NOT CLRSAMPLER_SANITIZE)
  list(APPEND clrsampler_definitions -D_FORTIFY_SOURCE=2)
endif()
# The tested code is optimised; the optimiser's time on 100 files of assertions is a third of the build's.
set(clrsampler_test_options -O0 -g1 -U_FORTIFY_SOURCE)

add_library(clrsampler_options INTERFACE)
target_include_directories(clrsampler_options INTERFACE ${PROJECT_SOURCE_DIR}/userspace ${PROJECT_SOURCE_DIR}/include)
target_compile_options(clrsampler_options INTERFACE -Wall -Wextra -Werror -Wshadow -Wvla -Wno-missing-field-initializers
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  ${clrsampler_code_options}
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unused-private-field>
  # GCC takes a source of a batch for a header, where such a member would be wrong. The preset dev compiles without batches.
  $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-subobject-linkage>)
target_compile_definitions(clrsampler_options INTERFACE ${clrsampler_definitions})
if(CLRSAMPLER_SANITIZE OR CLRSAMPLER_FUZZ)
  target_link_options(clrsampler_options INTERFACE -fsanitize=address,undefined)
endif()

clrsampler_precompile(library ${clrsampler_definitions} ${clrsampler_code_options})
if(NOT CLRSAMPLER_ONLY_FUZZ)
  clrsampler_precompile(test ${clrsampler_definitions} ${clrsampler_code_options} ${clrsampler_test_options} -DGTEST_HAS_PTHREAD=1)
endif()

# clrsampler_library(NAME SOURCES ... [DEPS ...]): static library clrsampler_NAME. DEPS are target names.
function(clrsampler_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(clrsampler_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(clrsampler_${name} PUBLIC clrsampler_options ${ARG_DEPS})
  clrsampler_use_precompiled(clrsampler_${name} library)
endfunction()

# clrsampler_test(NAME SOURCES ... [DEPS ...] [LIVE] [COST SECONDS]): a GoogleTest program, one CTest test for each of its cases:
# NAME.Suite.Case. LIVE: it needs root and the kernel, so it has the label live instead of unit, and its cases run one by one. COST: how long it
# takes under sanitizers, so that long ones begin first.
function(clrsampler_test name)
  if(CMAKE_CROSSCOMPILING OR CLRSAMPLER_ONLY_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "LIVE" "COST" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} $<TARGET_OBJECTS:clrsampler_test_main>)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} clrsampler_test_paths GTest::gmock GTest::gtest)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE ${clrsampler_test_options})
  clrsampler_use_precompiled(${name} test)
  if(NOT ARG_COST)
    set(ARG_COST 0)
  endif()
  set(timeout 300)
  if(CLRSAMPLER_SANITIZE)
    set(timeout 1800)  # ten to twenty times as long
  endif()
  if(ARG_LIVE)
    set(properties LABELS live RUN_SERIAL TRUE)
  else()
    set(properties LABELS unit)
  endif()
  if(CLRSAMPLER_SANITIZE OR (CLRSAMPLER_TESTS_BY_PROGRAM AND NOT ARG_LIVE))
    # A start takes 0.03 s of CPU time, and 0.16 s under sanitizers. There are 3,300 cases.
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} COST ${ARG_COST} ${properties})
    return()
  endif()
  # After the link, so that a program whose cases can't be listed fails the build.
  gtest_discover_tests(${name} TEST_PREFIX ${name}. NO_PRETTY_VALUES NO_PRETTY_TYPES DISCOVERY_TIMEOUT 300
    PROPERTIES TIMEOUT ${timeout} ${properties})
endfunction()

# clrsampler_fuzz(NAME SOURCES ... DEPS ... CORPUS dir): with CLRSAMPLER_FUZZ a libFuzzer program, and a test that runs it over its corpus.
function(clrsampler_fuzz name)
  if(NOT CLRSAMPLER_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  clrsampler_use_precompiled(${name} library)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  add_dependencies(fuzz_targets ${name})
  add_test(NAME ${name}_corpus COMMAND ${name} -runs=0 ${ARG_CORPUS})
  set_tests_properties(${name}_corpus PROPERTIES TIMEOUT 600 LABELS "fuzz_corpus")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endfunction()

# clrsampler_bench(NAME SOURCES ... DEPS ...): a Google Benchmark program, built by the target benches; never a test.
function(clrsampler_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  add_dependencies(benches ${name})
  clrsampler_use_precompiled(${name} library)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} clrsampler_test_paths benchmark::benchmark_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endfunction()
