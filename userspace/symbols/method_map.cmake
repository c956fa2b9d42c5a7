# The method that was at an address at a time.
clrsampler_library(symbols_method_map SOURCES method_map.cc DEPS clrsampler_os absl::btree absl::hash absl::strings)
