clrsampler_test(method_map_test
  SOURCES method_map_test.cc method_map_property_test.cc sorted_blocks_test.cc
  DEPS clrsampler_symbols_method_map)
