# Unwind data of managed code against the code itself, in the real images and in running processes.
if(TARGET unwind_check)
  add_test(NAME unwind_data_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/unwind_data_test.py)
  set_tests_properties(unwind_data_test PROPERTIES LABELS "live_dotnet" TIMEOUT 1800 SKIP_RETURN_CODE 77
    ENVIRONMENT "UNWIND_CHECK=$<TARGET_FILE:unwind_check>;PYTHONDONTWRITEBYTECODE=1")
  add_test(NAME unwind_data_matrix COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/unwind_data_test.py)
  set_tests_properties(unwind_data_matrix PROPERTIES LABELS "matrix;long" TIMEOUT 1200 RUN_SERIAL TRUE SKIP_RETURN_CODE 77
    ENVIRONMENT "CLRSAMPLER_MATRIX=full;UNWIND_CHECK=$<TARGET_FILE:unwind_check>;PYTHONDONTWRITEBYTECODE=1")
  # Publishes three programs, minutes each, the first time.
  add_test(NAME native_aot_unwind_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/native_aot_unwind_test.py)
  set_tests_properties(native_aot_unwind_test PROPERTIES LABELS "long" TIMEOUT 1800 RUN_SERIAL TRUE SKIP_RETURN_CODE 77
    ENVIRONMENT "UNWIND_CHECK=$<TARGET_FILE:unwind_check>;PYTHONDONTWRITEBYTECODE=1")
endif()
