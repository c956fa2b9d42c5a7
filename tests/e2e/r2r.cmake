# Names of precompiled code, judged by the real images, by crossgen2 and by running runtimes.
if(TARGET r2r_check)
  add_test(NAME r2r_names_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/r2r_names_test.py)
  set_tests_properties(r2r_names_test PROPERTIES LABELS "live_dotnet" TIMEOUT 3600 SKIP_RETURN_CODE 77
    ENVIRONMENT "R2R_CHECK=$<TARGET_FILE:r2r_check>;CLRSAMPLER=$<TARGET_FILE:clrsampler>;PYTHONDONTWRITEBYTECODE=1")
  add_test(NAME arm64_frames_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/arm64_frames_test.py)
  set_tests_properties(arm64_frames_test PROPERTIES LABELS "long" TIMEOUT 1200 SKIP_RETURN_CODE 77
    ENVIRONMENT "R2R_CHECK=$<TARGET_FILE:r2r_check>;PYTHONDONTWRITEBYTECODE=1")
  add_test(NAME r2r_names_matrix COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/r2r_names_test.py)
  set_tests_properties(r2r_names_matrix PROPERTIES LABELS "matrix;long" TIMEOUT 3600 RUN_SERIAL TRUE SKIP_RETURN_CODE 77
    ENVIRONMENT "CLRSAMPLER_MATRIX=full;R2R_CHECK=$<TARGET_FILE:r2r_check>;CLRSAMPLER=$<TARGET_FILE:clrsampler>;PYTHONDONTWRITEBYTECODE=1")
endif()
