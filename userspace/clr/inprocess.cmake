# The profiler library in a process, as the agent sees it.
clrsampler_library(clr_inprocess
  SOURCES inprocess/library_place.cc inprocess/library_session.cc inprocess/library_socket.cc inprocess/shared_ring.cc
  DEPS clrsampler_clr_diagnostics clrsampler_os clrsampler_process clrsampler_formats_inprocess clrsampler_formats_runtime
       absl::function_ref absl::strings)
