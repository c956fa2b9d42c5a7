clrsampler_test(r2r_methods_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/r2r_methods_test.cc
  DEPS clrsampler_clr_r2r)
clrsampler_test(r2r_memory_images_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/r2r_memory_images_test.cc
  DEPS clrsampler_clr_r2r)
clrsampler_test(r2r_map_content_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/r2r_map_content_test.cc
  DEPS clrsampler_clr_r2r)
