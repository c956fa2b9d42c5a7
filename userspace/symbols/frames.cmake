# What a frame is and how a source is asked; no source itself.
clrsampler_library(symbols_frames SOURCES frame.cc symbolizer.cc DEPS clrsampler_process clrsampler_formats_names absl::flat_hash_map absl::hash)
