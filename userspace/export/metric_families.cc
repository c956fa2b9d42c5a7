#include "export/metric_families.h"

namespace clrsampler {
namespace {

using enum MetricId;
using enum MetricKind;

constexpr MetricFamilyRow kRows[] = {
    {kBuildInfo, kGauge, "clrsampler_build_info", "version, arch", "1; what runs here."},
    {kProcessInfo, kGauge, "clrsampler_process_info",
     "process, pid, comm, container, container_id, runtime, service, k8s_namespace_name, k8s_pod_name, "
     "k8s_container_name",
     "1; what is known of a process that has its own series."},
    {kProcesses, kGauge, "clrsampler_processes", "kind",
     "Processes in the last window, with a .NET runtime or without."},
    {kProcessCpu, kCounter, "clrsampler_process_cpu_seconds_total", "process, container, share",
     "CPU time by what the processor did; process=\"other\" are all without a series of their own."},
    {kContainerCpu, kCounter, "clrsampler_container_cpu_seconds_total", "container, share",
     "CPU time of all processes of a container; \"none\" are those in no container."},
    {kHostCpu, kCounter, "clrsampler_host_cpu_seconds_total", "share", "CPU time of all processes."},
    {kHostStolen, kCounter, "clrsampler_host_stolen_cpu_seconds_total", "",
     "CPU time that a hypervisor took from all CPUs for others, as far as it says so."},
    {kSuspension, kHistogram, "clrsampler_gc_suspension_duration_seconds", "process, reason, generation",
     "How long the runtime kept its threads from running, from the request to stop on; for collections and for other "
     "reasons."},
    {kTimeToSuspend, kHistogram, "clrsampler_gc_time_to_suspend_seconds", "process, reason, generation",
     "How long it took until all threads stood still."},
    {kCollections, kCounter, "clrsampler_gc_collections_total", "process, generation",
     "Collections that ended, background ones among them."},
    {kBackgroundCollections, kCounter, "clrsampler_gc_background_collections_total", "process",
     "Background collections that ended."},
    {kJitSeconds, kCounter, "clrsampler_jit_seconds_total", "process, tier",
     "Time in the JIT compiler, of each method alone."},
    {kJitMethods, kCounter, "clrsampler_jit_methods_total", "process, tier", "Compilations."},
    {kAllocatedBytes, kCounter, "clrsampler_allocated_bytes_total", "process",
     "Bytes that the collector handed out for objects; while probes were detached, as the runtime counted them."},
    {kWaitSeconds, kCounter, "clrsampler_wait_seconds_total", "process, kind",
     "Time that threads were off the CPU, by what they waited for; with --waits."},
    {kSamplesExpected, kCounter, "clrsampler_samples_expected_total", "",
     "Samples that the CPU time of the processes should have given."},
    {kSamplesTaken, kCounter, "clrsampler_samples_taken_total", "", "Samples that came from the kernel."},
    {kSamplesWritten, kCounter, "clrsampler_samples_written_total", "", "Samples that are in windows."},
    {kSamplesSetAside, kCounter, "clrsampler_samples_set_aside_total", "",
     "Samples of processes that are not selected."},
    {kSamplesLost, kCounter, "clrsampler_samples_lost_total", "reason", "Samples that were lost, by the reason."},
    {kRuntimeEventsLost, kCounter, "clrsampler_runtime_events_lost_total", "source",
     "Events of runtimes that were lost, or left out by a limit."},
    {kWaits, kCounter, "clrsampler_waits_total", "result",
     "Parts of waits that ended: told, too short to be told, passed over by chance, or lost; with --waits."},
    {kHooksDetached, kCounter, "clrsampler_hooks_detached_seconds_total", "",
     "Time for which processes went without probes that had cost them their share, added up."},
    {kFrames, kCounter, "clrsampler_frames_total", "kind, named", "Frames of all samples, with a name and without."},
    {kFramesWithLine, kCounter, "clrsampler_frames_with_line_total", "",
     "Managed frames of all samples that have a file and a line; none without --lines."},
    {kNativeFramesWithLine, kCounter, "clrsampler_native_frames_with_line_total", "",
     "Native frames of all samples that have a file and a line; none without --lines."},
    {kPdbs, kCounter, "clrsampler_pdbs_total", "result", "PDBs of assemblies, by how the search for them ended."},
    {kNativeLineFiles, kCounter, "clrsampler_native_line_files_total", "result",
     "Files with debug information of native code that were opened, and those of them that could not be read."},
    {kStacks, kCounter, "clrsampler_stacks_total", "result", "Stacks of samples, by how far they lead."},
    {kNotices, kCounter, "clrsampler_notices_total", "kind", "Things that went wrong without ending the service."},
    {kPerfMaps, kCounter, "clrsampler_perf_maps_total", "result",
     "Perf maps that --enable-perf-map asked for, by what became of them."},
    {kFrequency, kGauge, "clrsampler_sampling_frequency_hertz", "", "Samples a second and CPU, at present."},
    {kFrequencyChanges, kCounter, "clrsampler_sampling_frequency_changes_total", "direction",
     "How often the frequency went down to shed load, and up again."},
    {kCoveredSeconds, kCounter, "clrsampler_covered_seconds_total", "", "Time that windows were made of."},
    {kLastWindow, kGauge, "clrsampler_last_window_timestamp_seconds", "",
     "When the last window ended, in unix time; before there is one, when the service began."},
    {kClockJumps, kCounter, "clrsampler_clock_jumps_total", "", "How often the wall clock was set by over a second."},
    {kWindows, kCounter, "clrsampler_windows_total", "result",
     "Windows that were written to the store, and that were not."},
    {kStoreBytes, kGauge, "clrsampler_store_bytes", "", "Size of the store with its log."},
    {kFlightRecordings, kCounter, "clrsampler_flight_recordings_total", "trigger, result",
     "Recordings that triggers asked for: kept, and left out by the limit on their rate."},
    {kHttpRequests, kCounter, "clrsampler_http_requests_total", "endpoint, code", "Requests that were answered."},
    {kHttpConnectionsEnded, kCounter, "clrsampler_http_connections_ended_total", "reason",
     "Connections that ended otherwise than after an answer."},
    {kPushes, kCounter, "clrsampler_push_requests_total", "result", "Attempts to send profiles to --push."},
    {kPushDropped, kCounter, "clrsampler_push_dropped_total", "reason", "Profiles that were not sent to --push."},
    {kPushBytes, kCounter, "clrsampler_push_bytes_total", "", "Bytes of profiles that --push took."},
    {kOtlpRequests, kCounter, "clrsampler_otlp_requests_total", "result", "Attempts to send requests to --otlp."},
    {kOtlpDropped, kCounter, "clrsampler_otlp_dropped_total", "reason", "Requests that were not sent to --otlp."},
    {kOtlpBytes, kCounter, "clrsampler_otlp_bytes_total", "", "Bytes of compressed requests that --otlp took."},
    {kOtlpSamples, kCounter, "clrsampler_otlp_samples_total", "result",
     "Samples of CPU time that were taken for --otlp, and of these sent and dropped."},
    {kOtlpRejected, kCounter, "clrsampler_otlp_rejected_profiles_total", "",
     "Profiles that --otlp rejected in requests that it took."},
    {kOtlpWaitingRequests, kGauge, "clrsampler_otlp_waiting_requests", "", "Requests that wait for --otlp."},
    {kOtlpWaitingBytes, kGauge, "clrsampler_otlp_waiting_bytes", "", "Bytes of requests that wait for --otlp."},
    {kOtlpWaitingSamples, kGauge, "clrsampler_otlp_waiting_samples", "",
     "Samples of CPU time in requests that wait for --otlp."},
    {kAgentCpu, kCounter, "clrsampler_agent_cpu_seconds_total", "", "The profiler's own CPU time."},
    {kAgentMemory, kGauge, "clrsampler_agent_resident_memory_bytes", "", "The profiler's own memory."},
    {kBpfMapBytes, kGauge, "clrsampler_bpf_map_bytes", "", "Memory of BPF maps."},
    {kSelfCpu, kCounter, "process_cpu_seconds_total", "", "Total user and system CPU time spent in seconds."},
    {kSelfResident, kGauge, "process_resident_memory_bytes", "", "Resident memory size in bytes."},
    {kSelfVirtual, kGauge, "process_virtual_memory_bytes", "", "Virtual memory size in bytes."},
    {kSelfOpenFds, kGauge, "process_open_fds", "", "Number of open file descriptors."},
    {kSelfMaxFds, kGauge, "process_max_fds", "", "Maximum number of open file descriptors."},
    {kSelfStart, kGauge, "process_start_time_seconds", "", "Start time of the process since unix epoch in seconds."},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < kMetricIdCount; ++i) {
    if (static_cast<size_t>(kRows[i].id) != i) return false;
  }
  return true;
}
static_assert(std::size(kRows) == kMetricIdCount && InOrder());

}  // namespace

std::span<const MetricFamilyRow, kMetricIdCount> MetricFamilies() { return kRows; }

}  // namespace clrsampler
