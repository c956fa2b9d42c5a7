# Names that the real runtimes' images hold of their own functions.
if(TARGET runtime_names_check)
  add_test(NAME runtime_names_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/runtime_names_test.py)
  set_tests_properties(runtime_names_test PROPERTIES LABELS "live_dotnet" TIMEOUT 600 SKIP_RETURN_CODE 77
    ENVIRONMENT "RUNTIME_NAMES_CHECK=$<TARGET_FILE:runtime_names_check>;PYTHONDONTWRITEBYTECODE=1")
endif()
