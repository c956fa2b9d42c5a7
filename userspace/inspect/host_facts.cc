#include "inspect/host_facts.h"

#include <dirent.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "capture/perf_events.h"
#include "capture/return_probes.h"
#include "capture/sampler.h"
#include "os/file_io.h"
#include "os/pid_namespace.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxTextBytes = 64 * 1024;

std::optional<int64_t> ReadNumber(const std::string& path) {
  const auto text = ReadWholeFile(path, 256);
  int64_t number = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &number)) return std::nullopt;
  return number;
}

uint64_t AvailableBytes(const std::string& proc_root) {
  const auto text = ReadWholeFile(proc_root + "/meminfo", kMaxTextBytes);
  if (!text.ok()) return 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    uint64_t kilobytes = 0;
    if (!absl::ConsumePrefix(&line, "MemAvailable:")) continue;
    absl::ConsumeSuffix(&line, "kB");
    if (absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &kilobytes)) return kilobytes * 1024;
  }
  return 0;
}

// Those whose program has our comm; a thread of ours is none.
std::vector<uint32_t> OtherAgents(const std::string& proc_root) {
  std::vector<uint32_t> pids;
  const auto own = ReadWholeFile("/proc/self/comm", 64);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(proc_root.c_str()), closedir);
  if (!own.ok() || directory == nullptr) return pids;
  while (const dirent* entry = readdir(directory.get())) {
    uint32_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid) || pid == 0 || pid == static_cast<uint32_t>(getpid())) continue;
    const auto comm = ReadWholeFile(absl::StrCat(proc_root, "/", pid, "/comm"), 64);
    if (comm.ok() && *comm == *own) pids.push_back(pid);
  }
  return pids;
}

}  // namespace

uint64_t OwnCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return 0;
  return uint64_t{data[1].effective} << 32 | data[0].effective;
}

HostFacts ReadHostFacts(const std::string& proc_root, const std::string& sys_root) {
  HostFacts facts;
  utsname names{};
  if (uname(&names) == 0) {
    facts.kernel = names.release;
    facts.architecture = names.machine;
  }
  facts.root = geteuid() == 0;
  facts.capabilities = OwnCapabilities();
  facts.features = ProbeFeatures(ProbeDepth::kEverything);
  facts.return_probes = CheckReturnProbes();
  const std::string kernel = proc_root + "/sys/kernel/";
  facts.perf_events_refused = PerfEventsAreRefused();
  facts.perf_event_paranoid = ReadNumber(kernel + "perf_event_paranoid");
  facts.perf_event_mlock_kb = ReadNumber(kernel + "perf_event_mlock_kb");
  facts.perf_event_max_sample_rate = ReadNumber(kernel + "perf_event_max_sample_rate");
  facts.perf_cpu_time_max_percent = ReadNumber(kernel + "perf_cpu_time_max_percent");
  facts.kptr_restrict = ReadNumber(kernel + "kptr_restrict");
  facts.ptrace_scope = ReadNumber(kernel + "yama/ptrace_scope");
  struct stat status {};
  for (const char* folder : {"/kernel/tracing/events", "/kernel/debug/tracing/events"}) {
    facts.tracefs |= stat((sys_root + folder).c_str(), &status) == 0;
  }
  facts.cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  facts.ring_bytes = DefaultRingBytes(facts.cpus, kDefaultFrequencyHz);
  facts.available_bytes = AvailableBytes(proc_root);
  facts.own_pid_namespace = OwnPidNamespaceInode().value_or(0) != 0;
  facts.other_agents = OtherAgents(proc_root);
  return facts;
}

}  // namespace clrsampler
