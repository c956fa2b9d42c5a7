# The frame and the way to ask a source; no source itself.
clrsampler_library(symbols_frames SOURCES frame.cc name_budget.cc symbolizer.cc DEPS clrsampler_process clrsampler_formats_names absl::flat_hash_map absl::hash)
