# The capture library's scenarios on eight kernels, in virtual machines; docs/testing.md has the command. The arm64 program
# comes from the preset aarch64.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(capture_selftest_x86_64 $<TARGET_FILE:capture_selftest>)
  set(capture_selftest_aarch64 ${CLRSAMPLER_ARM64_BUILD}/tests/unit/capture/capture_selftest)
  foreach(suite bullseye bookworm trixie sid)
    foreach(arch x86_64 aarch64)
      add_test(NAME capture_${suite}_${arch}_vm_test
        COMMAND ${PROJECT_SOURCE_DIR}/tools/kernel_matrix/run_matrix -k ${suite}/${arch}
          ${capture_selftest_x86_64} ${capture_selftest_aarch64} --emulated --hotplug)
      # 40 s with two busy cores; twice, and time to fetch a kernel
      set_tests_properties(capture_${suite}_${arch}_vm_test PROPERTIES
        LABELS "vm" TIMEOUT 600 SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
    endforeach()
  endforeach()
endif()
