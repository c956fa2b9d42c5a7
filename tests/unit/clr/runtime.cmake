# Images with the exports of each runtime, under names that say nothing.
set(runtime_fixtures ${CMAKE_BINARY_DIR}/runtime_fixtures)
set(runtime_fixture_files)
if(NOT CMAKE_CROSSCOMPILING AND NOT CLRSAMPLER_ONLY_FUZZ)
  foreach(kind CORECLR SINGLE_FILE NATIVE_AOT MONO STANDALONE_GC IMPOSTOR)
    add_custom_command(
      OUTPUT ${runtime_fixtures}/${kind}/image
      COMMAND ${CMAKE_COMMAND} -E make_directory ${runtime_fixtures}/${kind}
      COMMAND ${CMAKE_C_COMPILER} -D${kind} -O1 -fPIC -shared -Wl,--hash-style=gnu ${CMAKE_CURRENT_LIST_DIR}/runtime_fixture.c
              -o ${runtime_fixtures}/${kind}/image
      DEPENDS ${CMAKE_CURRENT_LIST_DIR}/runtime_fixture.c)
    list(APPEND runtime_fixture_files ${runtime_fixtures}/${kind}/image)
  endforeach()
  add_custom_target(runtime_fixtures DEPENDS ${runtime_fixture_files})
  clrsampler_test(clr_runtime_test SOURCES runtime_facts_test.cc runtime_image_test.cc runtime_discovery_test.cc emulated_code_test.cc
    DEPS clrsampler_clr_runtime)
  add_dependencies(clr_runtime_test runtime_fixtures)
endif()
