# Names of code compiled in the target, from its jitdump and perf map.
clrsampler_library(clr_jit
  SOURCES tailed_file.cc recorded_name.cc jitdump_tailer.cc perf_map_tailer.cc jit_files.cc jit_methods.cc
  DEPS clrsampler_os clrsampler_process clrsampler_formats_jit clrsampler_formats_names clrsampler_symbols_frames
       clrsampler_symbols_method_map absl::flat_hash_map absl::strings)
# Questions to a runtime over its diagnostics socket.
clrsampler_library(clr_diagnostics
  SOURCES diagnostics_client.cc event_session.cc
  DEPS clrsampler_os clrsampler_process clrsampler_formats_proc clrsampler_formats_runtime absl::function_ref absl::strings)
