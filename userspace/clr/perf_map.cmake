# Perf maps that are switched on, and off, over that socket.
clrsampler_library(clr_perf_map_lease
  SOURCES perf_map/lease_record.cc perf_map/lease_repair.cc perf_map/lease_store.cc perf_map/perf_map_lease.cc perf_map/perf_map_lease_steps.cc perf_map/perf_map_target.cc
  DEPS clrsampler_clr_diagnostics clrsampler_clr_jit clrsampler_clr_runtime clrsampler_os clrsampler_process clrsampler_formats_proc
       absl::flat_hash_map absl::strings)
