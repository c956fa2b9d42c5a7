#include "inspect/host_checks.h"

#include <linux/capability.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "capture/load_error.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int64_t kUsualMlockKb = 516;

void Add(Findings& findings, FindingLevel level, absl::string_view check, std::string what,
         absl::string_view fix = "") {
  findings.push_back({level, std::string(check), std::move(what), std::string(fix)});
}

struct Capability {
  int number;
  absl::string_view name;
  absl::string_view without;  // what is lost; empty: everything
};
// CAP_SYS_ADMIN stands for the first two and the last.
constexpr Capability kCapabilities[] = {
    {CAP_BPF, "CAP_BPF", ""},
    {CAP_PERFMON, "CAP_PERFMON", ""},
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "processes of other users can't be read"},
    {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "files of other users can't be read"},
    {CAP_SYSLOG, "CAP_SYSLOG", "kernel frames may have no names"},
    {CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE",
     "images that were replaced after they were mapped can't be read"},
};

bool Has(const HostFacts& facts, int capability) { return (facts.capabilities >> capability & 1) != 0; }

// Whether names of kernel code come from /proc/kallsyms, which settings hide. A newer kernel is asked by a BPF program,
// and answers whatever the settings say. Without the right to try nothing is known of it.
bool ReadsKallsyms(const HostFacts& facts) {
  return facts.features.load_error == 0 && !facts.features.Has(kFeatureSyscallProgram);
}

void CheckKernel(const HostFacts& facts, Findings& findings) {
  const bool known = facts.architecture == "x86_64" || facts.architecture == "aarch64";
  Add(findings, known ? FindingLevel::kPass : FindingLevel::kFail, "kernel",
      absl::StrCat("kernel ", facts.kernel, " on ", facts.architecture), known ? "" : "x86-64 and arm64 are supported");
}

void CheckCapabilities(const HostFacts& facts, Findings& findings) {
  std::vector<absl::string_view> missing, lost;
  bool fails = false;
  for (const Capability& one : kCapabilities) {
    const bool admin_will_do = one.without.empty() || one.number == CAP_CHECKPOINT_RESTORE || one.number == CAP_SYSLOG;
    if (Has(facts, one.number) || (admin_will_do && Has(facts, CAP_SYS_ADMIN))) continue;
    if (one.number == CAP_SYSLOG && !ReadsKallsyms(facts)) continue;
    missing.push_back(one.name);
    fails |= one.without.empty();
    if (!one.without.empty()) lost.push_back(one.without);
  }
  if (missing.empty()) {
    Add(findings, FindingLevel::kPass, "capabilities",
        facts.root ? "privileges: root" : "privileges: all capabilities needed");
    return;
  }
  std::string what = absl::StrCat("privileges: without ", absl::StrJoin(missing, ", "));
  if (!fails) absl::StrAppend(&what, ": ", absl::StrJoin(lost, "; "));
  Add(findings, fails ? FindingLevel::kFail : FindingLevel::kWarn, "capabilities", std::move(what),
      ReadsKallsyms(facts) ? absl::StrCat(kSetcapHint, "; before Linux 5.14 cap_syslog too") : kSetcapHint);
}

void CheckFeatures(const HostFacts& facts, Findings& findings) {
  const FeatureReport& report = facts.features;
  const bool has_btf = report.Has(kFeatureBtf);
  Add(findings, has_btf ? FindingLevel::kPass : FindingLevel::kFail, "btf",
      has_btf ? "BTF: the kernel has type information" : "BTF: /sys/kernel/btf/vmlinux can't be read",
      has_btf ? "" : "use a kernel built with CONFIG_DEBUG_INFO_BTF=y; in a container, mount /sys");
  if (report.lockdown == "confidentiality") {
    Add(findings, FindingLevel::kFail, "lockdown", "lockdown: confidentiality, which forbids BPF to read memory",
        "boot with lockdown=none or lockdown=integrity");
  } else {
    Add(findings, FindingLevel::kPass, "lockdown",
        absl::StrCat("lockdown: ", report.lockdown.empty() ? "not in this kernel" : report.lockdown));
  }
  if (report.load_error != 0) {
    // Without privileges nothing can be tried, and the line on privileges says how to get on.
    const bool privileged = Has(facts, CAP_SYS_ADMIN) || (Has(facts, CAP_BPF) && Has(facts, CAP_PERFMON));
    const absl::Status usable = report.Usable();
    Add(findings, privileged ? FindingLevel::kFail : FindingLevel::kWarn, "bpf",
        privileged ? absl::StrCat("BPF: ", usable.message())
                   : "BPF: what the kernel can do was not tried, for want of privileges",
        privileged ? HintOf(usable) : std::string("run doctor again with sudo"));
    return;
  }
  for (const Feature& feature : report.features) {
    if (feature.name == kFeatureBtf || feature.name == "kernel lockdown") continue;
    const std::string what = absl::StrCat("BPF: ", feature.name, feature.present ? "" : " is missing",
                                          feature.detail.empty() ? "" : absl::StrCat(" (", feature.detail, ")"));
    // Where a feature that is not required is missing, another way is taken.
    if (feature.present || !feature.required) {
      Add(findings, FindingLevel::kPass, "bpf", what);
    } else {
      Add(findings, FindingLevel::kFail, "bpf", what, "Linux 5.10 or newer is needed");
    }
  }
}

void CheckReturnProbes(const HostFacts& facts, Findings& findings) {
  if (facts.return_probes.ok()) {
    Add(findings, FindingLevel::kPass, "return_probes", "return probes: harmless to programs with a seccomp filter");
  } else {
    Add(findings, FindingLevel::kWarn, "return_probes",
        absl::StrCat("pauses can't be seen: ", facts.return_probes.message()), HintOf(facts.return_probes));
  }
}

void CheckPerfSettings(const HostFacts& facts, Findings& findings) {
  const bool privileged = Has(facts, CAP_PERFMON) || Has(facts, CAP_SYS_ADMIN);
  if (facts.perf_event_paranoid.has_value() && privileged && facts.perf_events_refused) {
    Add(findings, FindingLevel::kFail, "perf_event_paranoid",
        absl::StrCat("kernel.perf_event_paranoid is ", *facts.perf_event_paranoid,
                     ", and this kernel refuses performance events to us"),
        "some kernels take CAP_SYS_ADMIN above 2: use sudo, or `sysctl kernel.perf_event_paranoid=2`; in a container, "
        "a "
        "seccomp profile that allows perf_event_open");
  } else if (facts.perf_event_paranoid.has_value()) {
    Add(findings, FindingLevel::kPass, "perf_event_paranoid",
        absl::StrCat("kernel.perf_event_paranoid is ", *facts.perf_event_paranoid,
                     privileged ? ", which does not bind us" : ", which does not matter before CAP_PERFMON is there"));
  } else {
    Add(findings, FindingLevel::kFail, "perf_event_paranoid", "the kernel has no performance events",
        "use a kernel built with CONFIG_PERF_EVENTS=y; in a container, mount /proc");
  }
  if (facts.perf_event_max_sample_rate.has_value()) {
    const bool enough = *facts.perf_event_max_sample_rate >= kDefaultFrequencyHz;
    Add(findings, enough ? FindingLevel::kPass : FindingLevel::kFail, "perf_event_max_sample_rate",
        absl::StrCat("kernel.perf_event_max_sample_rate is ", *facts.perf_event_max_sample_rate),
        enough ? "" : "sysctl kernel.perf_event_max_sample_rate=100000 kernel.perf_cpu_time_max_percent=25");
  }
  if (facts.perf_event_mlock_kb.has_value()) {
    const bool small = *facts.perf_event_mlock_kb < kUsualMlockKb && !Has(facts, CAP_IPC_LOCK) && !privileged;
    Add(findings, small ? FindingLevel::kWarn : FindingLevel::kPass, "perf_event_mlock_kb",
        absl::StrCat("kernel.perf_event_mlock_kb is ", *facts.perf_event_mlock_kb),
        small ? "sysctl kernel.perf_event_mlock_kb=516" : "");
  }
}

void CheckReading(const HostFacts& facts, Findings& findings) {
  const bool restricted = facts.kptr_restrict.value_or(0) >= 2 || (facts.kptr_restrict == 1 && !Has(facts, CAP_SYSLOG));
  if (facts.kptr_restrict.has_value()) {
    const bool hidden = restricted && ReadsKallsyms(facts);
    const bool asks_kernel = facts.features.Has(kFeatureSyscallProgram);
    Add(findings, hidden ? FindingLevel::kWarn : FindingLevel::kPass, "kptr_restrict",
        absl::StrCat("kernel.kptr_restrict is ", *facts.kptr_restrict,
                     hidden        ? ": kernel frames may have no names"
                     : !restricted ? ""
                     : asks_kernel ? ", which does not bind us"
                                   : ", which matters only before Linux 5.14"),
        hidden ? "sysctl kernel.kptr_restrict=0" : "");
  }
  if (facts.ptrace_scope.has_value()) {
    const bool closed = *facts.ptrace_scope >= 3;
    const bool bound = *facts.ptrace_scope >= 1 && !Has(facts, CAP_SYS_PTRACE);
    Add(findings, closed || bound ? FindingLevel::kWarn : FindingLevel::kPass, "ptrace_scope",
        absl::StrCat("kernel.yama.ptrace_scope is ", *facts.ptrace_scope,
                     closed || bound ? ": memory of processes can't be read" : ""),
        closed  ? "boot with kernel.yama.ptrace_scope below 3, or start processes with DOTNET_PerfMapEnabled=3"
        : bound ? kSetcapHint
                : "");
  }
  Add(findings, FindingLevel::kPass, "tracefs",
      facts.tracefs ? "tracefs: mounted" : "tracefs: not mounted, and not needed for CPU samples");
  if (facts.own_pid_namespace) {
    Add(findings, FindingLevel::kWarn, "pid_namespace",
        "this is a pid namespace of its own: only its processes are to be seen",
        "run on the host, or in a container with the host's pid namespace (docker: --pid=host, Kubernetes: hostPID)");
  }
}

void CheckMemory(const HostFacts& facts, Findings& findings) {
  const std::string text = absl::StrCat("ring buffer: ", facts.ring_bytes >> 10, " KiB for ", facts.cpus, " CPUs");
  // No system copes with a ring that takes more than half of the available memory.
  const bool scarce = facts.available_bytes != 0 && facts.ring_bytes > facts.available_bytes / 2;
  Add(findings, scarce ? FindingLevel::kWarn : FindingLevel::kPass, "ring_memory",
      facts.available_bytes == 0 ? text
                                 : absl::StrCat(text, "; ", facts.available_bytes >> 20, " MB of memory available"),
      scarce ? "--ring-bytes 1MiB" : "");
}

void CheckOthers(const HostFacts& facts, Findings& findings) {
  if (facts.other_agents.empty()) return;
  Add(findings, FindingLevel::kWarn, "other_agents",
      absl::StrCat("another clrsampler runs: process ", absl::StrJoin(facts.other_agents, ", ")),
      "none needed; their samples are each other's cost");
}

}  // namespace

Findings CheckHost(const HostFacts& facts) {
  Findings findings;
  CheckKernel(facts, findings);
  CheckCapabilities(facts, findings);
  CheckFeatures(facts, findings);
  CheckReturnProbes(facts, findings);
  CheckPerfSettings(facts, findings);
  CheckReading(facts, findings);
  CheckMemory(facts, findings);
  CheckOthers(facts, findings);
  return findings;
}

}  // namespace clrsampler
