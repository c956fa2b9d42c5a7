// Facts of a healthy process and host, for tests to spoil.
#ifndef CLRSAMPLER_TESTS_UNIT_INSPECT_SAMPLE_FACTS_H_
#define CLRSAMPLER_TESTS_UNIT_INSPECT_SAMPLE_FACTS_H_

#include "inspect/host_facts.h"
#include "inspect/process_facts.h"

namespace clrsampler {

inline ProcessFacts HealthyProcess(RuntimeVersion version = {10, 0, 14}) {
  ProcessFacts facts;
  facts.pid = 4711;
  facts.namespace_pid = 7;
  facts.comm = "Shop.Api";
  facts.runtime.emplace();
  facts.runtime->kind = RuntimeImageKind::kCoreClr;
  facts.runtime->version = version;
  facts.runtime->libc = LibcFlavour::kGlibc;
  facts.runtime->precompiled = true;
  facts.runtime->composite = false;
  facts.gc = GcFlavour::kServer;
  facts.environment.readable = true;
  facts.perf_map_directory.path = "/tmp";
  facts.perf_map_directory.free_bytes = uint64_t{10} << 30;
  facts.socket_path = "/tmp/dotnet-diagnostic-7-1-socket";
  facts.socket = absl::OkStatus();
  facts.age_seconds = 100;
  return facts;
}

inline ProcessFacts EmulatedProgram() {
  ProcessFacts facts = HealthyProcess();
  facts.comm = "qemu-aarch64-st";
  facts.runtime->machine = ElfMachine::kArm64;
  facts.runtime->form = DeploymentForm::kEmulated;
  return facts;
}

inline HostFacts HealthyHost() {
  HostFacts facts;
  facts.kernel = "6.1.0";
  facts.architecture = "x86_64";
  facts.root = true;
  facts.capabilities = ~uint64_t{0};
  for (const absl::string_view name :
       {kFeatureBtf, kFeaturePerfEventProgram, kFeatureRingBuffer, kFeatureProbeReadKernel}) {
    facts.features.features.push_back({std::string(name), true, true, ""});
  }
  facts.features.features.push_back({std::string(kFeatureSyscallProgram), true, false, ""});
  facts.features.lockdown = "none";
  facts.perf_event_paranoid = 2;
  facts.perf_event_mlock_kb = 516;
  facts.perf_event_max_sample_rate = 100000;
  facts.kptr_restrict = 0;
  facts.ptrace_scope = 1;
  facts.tracefs = true;
  facts.cpus = 2;
  facts.ring_bytes = 2 << 20;
  facts.available_bytes = uint64_t{8} << 30;
  return facts;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_INSPECT_SAMPLE_FACTS_H_
