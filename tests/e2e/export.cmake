# The service's server over made-up windows: no root, no .NET.
if(TARGET export_host)
  add_test(NAME http_server_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/http_server_test.py)
  add_test(NAME otlp_push_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/otlp_push_test.py)
  set_tests_properties(otlp_push_test PROPERTIES LABELS "live;export" TIMEOUT 600 SKIP_RETURN_CODE 77
    ENVIRONMENT "EXPORT_HOST=$<TARGET_FILE:export_host>;PYTHONDONTWRITEBYTECODE=1")
  set_tests_properties(http_server_test PROPERTIES LABELS "live;export" TIMEOUT 600 COST 85 SKIP_RETURN_CODE 77
    ENVIRONMENT "EXPORT_HOST=$<TARGET_FILE:export_host>;PYTHONDONTWRITEBYTECODE=1")
endif()
