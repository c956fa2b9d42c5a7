# Where probes go in the real runtimes, and in damaged copies of them.
if(TARGET hook_check)
  add_test(NAME hooks_located_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/hooks_located_test.py)
  set_tests_properties(hooks_located_test PROPERTIES LABELS "live_dotnet" TIMEOUT 1800 SKIP_RETURN_CODE 77
    ENVIRONMENT "HOOK_CHECK=$<TARGET_FILE:hook_check>;PYTHONDONTWRITEBYTECODE=1")
endif()
