# Precompiled headers of other libraries (precompiled/), for clang: one file for our libraries and programs, and one for tests. They go with batches, as
# the preset dev compiles each source with what it includes itself. GCC gains half as much, and warns falsely (-Warray-bounds, -Wstringop-overflow) in
# code from such a file.
#
# ccache takes the checksum beside such a file for the file, which is another one in each checkout (CCACHE_PCH_EXTSUM in compiler_cache.cmake). The path
# in the command is relative to the build folder, because clang writes it into debug information.

if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  set(clrsampler_precompiles ON)
endif()

# clrsampler_precompile(KIND OPTION...): compiles precompiled/KIND.h with the options that its users have.
function(clrsampler_precompile kind)
  if(NOT clrsampler_precompiles)
    return()
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}}")
  list(APPEND flags ${CMAKE_CXX20_STANDARD_COMPILE_OPTION} -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -Xclang -fno-pch-timestamp ${ARGN})
  set(header ${PROJECT_SOURCE_DIR}/cmake/precompiled/${kind}.h)
  set(output precompiled/${kind}.pch)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/precompiled)
  add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/${output} ${CMAKE_BINARY_DIR}/${output}.sum
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -MD -MF ${CMAKE_BINARY_DIR}/${output}.d -MT ${output} -x c++-header ${header} -o ${CMAKE_BINARY_DIR}/${output}
    COMMAND ${CMAKE_COMMAND} -E chdir ${PROJECT_SOURCE_DIR} ${CMAKE_CXX_COMPILER} ${flags} -E -x c++ cmake/precompiled/${kind}.h -o ${CMAKE_BINARY_DIR}/${output}.text
    COMMAND ${CMAKE_COMMAND} -E sha256sum ${output}.text > ${CMAKE_BINARY_DIR}/${output}.sum
    DEPENDS ${header}
    DEPFILE ${CMAKE_BINARY_DIR}/${output}.d
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    COMMENT "Precompiling ${kind}.h"
    VERBATIM)
  add_custom_target(precompiled_${kind} DEPENDS ${CMAKE_BINARY_DIR}/${output})
endfunction()

# clrsampler_use_precompiled(TARGET KIND)
function(clrsampler_use_precompiled target kind)
  if(NOT clrsampler_precompiles)
    return()
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include-pch precompiled/${kind}.pch>")
  add_dependencies(${target} precompiled_${kind})
endfunction()
