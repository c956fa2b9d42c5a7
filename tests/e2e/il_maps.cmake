# IL maps of compiled methods, judged by the runtimes that made them.
if(TARGET il_maps)
  add_test(NAME il_maps_oracle_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/il_maps_oracle_test.py)
  set_tests_properties(il_maps_oracle_test PROPERTIES LABELS "long" TIMEOUT 1800 RUN_SERIAL TRUE SKIP_RETURN_CODE 77
    ENVIRONMENT "IL_MAPS=$<TARGET_FILE:il_maps>;PYTHONDONTWRITEBYTECODE=1")
endif()
if(TARGET r2r_check)
  add_test(NAME il_maps_images_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/il_maps_images_test.py)
  set_tests_properties(il_maps_images_test PROPERTIES LABELS "long" TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "R2R_CHECK=$<TARGET_FILE:r2r_check>;PYTHONDONTWRITEBYTECODE=1")
  add_test(NAME il_maps_r2r_oracle_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/il_maps_r2r_oracle_test.py)
  set_tests_properties(il_maps_r2r_oracle_test PROPERTIES LABELS "long" TIMEOUT 900 RUN_SERIAL TRUE SKIP_RETURN_CODE 77
    ENVIRONMENT "R2R_CHECK=$<TARGET_FILE:r2r_check>;PYTHONDONTWRITEBYTECODE=1")
endif()
