#include "unit/capture/live_scenarios.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "capture/cpu_list.h"
#include "capture/drop_counters.h"
#include "capture/feature_report.h"
#include "capture/kernel_name_lookup.h"
#include "capture/sampler.h"
#include "capture/sampling_period.h"
#include "capture/side_band.h"
#include "capture/trap_cost.h"
#include "capture/uprobe.h"
#include "os/clock.h"
#include "process/cpu_time.h"
#include "status/status.h"
#include "unit/capture/live_targets.h"

namespace clrsampler::test_support {
namespace {

constexpr uint64_t kLongNs = 60'000'000'000;

void Sleep(double seconds) { usleep(static_cast<useconds_t>(seconds * 1e6)); }

absl::Status Wrong(absl::string_view what) { return absl::InternalError(what); }

template <typename... Parts>
absl::Status Expect(bool condition, const Parts&... parts) {
  return condition ? absl::OkStatus() : Wrong(absl::StrCat(parts...));
}

struct Recording {
  std::vector<DecodedSample> samples;
  wire_counters counters{};
  double seconds = 0;  // for which all CPUs were sampled
};

uint64_t TotalDrops(const wire_counters& counters) {
  return std::accumulate(std::begin(counters.drops), std::end(counters.drops), uint64_t{0});
}

// Samples `target` alone (or whatever `options` say) for a while, and until it has run for a quarter of that.
absl::StatusOr<Recording> Record(SamplerOptions options, Target& target, double seconds, int frequency,
                                 double* cpu_seconds = nullptr) {
  options.frequency_hz = frequency;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(target.pid()));
  RETURN_IF_ERROR((*sampler)->Start());
  const uint64_t begin = SystemClock().Now().ns;
  target.Go();
  if (target.facts().ready == 0) return Wrong("the target did not start");
  Recording recording;
  const SystemClock clock;
  const uint64_t end = clock.Now().ns + static_cast<uint64_t>(seconds * 1e9), give_up = end + kLongNs;
  const auto keep = [&](std::span<const std::byte> record) { recording.samples.push_back(Decode(record)); };
  while (clock.Now().ns < end || (target.UsedSeconds() < seconds / 4 && clock.Now().ns < give_up)) {
    Sleep(0.05);
    (*sampler)->Drain(keep);
  }
  const double used = target.Stop();
  recording.seconds = static_cast<double>(clock.Now().ns - begin) / 1e9;
  (*sampler)->StopSampling();
  (*sampler)->Drain(keep);
  if (cpu_seconds != nullptr) *cpu_seconds = used;
  recording.counters = (*sampler)->counters();
  const wire_counters& counters = recording.counters;
  RETURN_IF_ERROR(Expect(counters.hits == counters.idle + counters.filtered + counters.sent + TotalDrops(counters),
                         "the counters do not add up: ", counters.hits, " hits"));
  RETURN_IF_ERROR(Expect(counters.sent == recording.samples.size(), counters.sent, " sent, ", recording.samples.size(),
                         " received"));
  for (const DecodedSample& sample : recording.samples) {
    if (!sample.well_formed) return Wrong("a record is not well formed");
  }
  return recording;
}

SamplerOptions Filtered() {
  SamplerOptions options;
  options.filter_processes = true;
  return options;
}

absl::Status CheckRate(ScenarioSetting& setting, size_t samples, double cpu_seconds) {
  const double share =
      static_cast<double>(samples * SamplingPeriodNs(static_cast<uint32_t>(setting.frequency))) / 1e9 / cpu_seconds;
  absl::StrAppendFormat(&setting.notes, " %d samples in %.2f s of CPU, %.2f of nominal;", samples, cpu_seconds, share);
  const double stolen = (StolenSeconds() - setting.stolen_before) / std::max(cpu_seconds, 0.05);
  return Expect(cpu_seconds > 0.05 && share >= setting.least_share - stolen && share <= setting.most_share, samples,
                " samples in ", cpu_seconds, " s of processor time, ", stolen, " of it stolen");
}

// Runs `work` in a process of its own, which can lose privileges for good.
absl::Status InAnotherProcess(const std::function<absl::Status()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Wrong("pipe");
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = work();
    const std::string text(status.message());
    if (write(ends[1], text.data(), text.size()) < 0) _exit(2);
    _exit(status.ok() ? 0 : 1);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = read(ends[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return Expect(status == 0, "in the child (status ", status, "): ", text);
}

}  // namespace

double StolenSeconds() { return static_cast<double>(ReadHostCpuTime("/proc").value_or(HostCpuTime()).stolen_ns) / 1e9; }

absl::Status SamplesABurningProcess(ScenarioSetting& setting) {
  Target target(Behaviour::kBurn);
  const pid_t pid = target.pid();
  const uint64_t begin = SystemClock().Now().ns;
  double cpu = 0;
  const auto recording = Record(Filtered(), target, setting.seconds, setting.frequency, &cpu);
  if (!recording.ok()) return recording.status();
  RETURN_IF_ERROR(CheckRate(setting, recording->samples.size(), cpu));
  uint64_t whole = 0;
  uint64_t pattern = 0;
  uint64_t user = 0;
  std::map<int, uint64_t> last_time;
  for (const DecodedSample& sample : recording->samples) {
    RETURN_IF_ERROR(Expect(sample.head.tgid == static_cast<uint32_t>(pid) && sample.head.tid == sample.head.tgid,
                           "a sample of ", sample.head.tgid, "/", sample.head.tid));
    RETURN_IF_ERROR(Expect(std::string(sample.head.comm) == "burn", "comm is ", sample.head.comm));
    RETURN_IF_ERROR(Expect(sample.head.process_start_ns != 0, "no start time"));
    uint64_t& last = last_time[sample.head.header.cpu];
    RETURN_IF_ERROR(
        Expect(sample.head.header.time_ns > begin && sample.head.header.time_ns > last, "time runs backwards"));
    last = sample.head.header.time_ns;
    if ((sample.head.flags & WIRE_SAMPLE_IN_KERNEL) != 0) continue;
    ++user;
    whole += sample.head.stop == WIRE_STOP_END && HasReturnAddress(sample, target.facts().leaf_returns_to) &&
             HasReturnAddress(sample, target.facts().middle_returns_to);
    // On x86-64 a frame's variables lie below its frame pointer, in its own gap; on arm64 above, in the caller's.
    size_t leaf = 0;
    while (leaf < sample.frames.size() && sample.frames[leaf].return_address != target.facts().leaf_returns_to) ++leaf;
    int64_t found = 0;
    for (size_t i = leaf; i < std::min(leaf + 2, sample.frames.size()); ++i) {
      found += std::count(sample.frames[i].gap.begin(), sample.frames[i].gap.end(), kGapPattern);
    }
    pattern += found >= 4;
  }
  absl::StrAppendFormat(&setting.notes, " %d of %d chains whole", whole, user);
  // At most its first sample may fall before Leaf.
  RETURN_IF_ERROR(Expect(user > 0 && whole + 2 >= user, whole, " whole chains of ", user));
  return Expect(pattern + 2 >= user, "the words of the leaf's frame arrived ", pattern, " times of ", user);
}

absl::Status WalksFromSavedRegistersInSystemCalls(ScenarioSetting& setting) {
  Target target(Behaviour::kSystemCalls);
  const auto recording = Record(Filtered(), target, setting.seconds, setting.frequency);
  if (!recording.ok()) return recording.status();
  uint64_t in_kernel = 0;
  uint64_t with_kernel_stack = 0;
  uint64_t whole = 0;
  for (const DecodedSample& sample : recording->samples) {
    if ((sample.head.flags & WIRE_SAMPLE_IN_KERNEL) == 0) continue;
    ++in_kernel;
    with_kernel_stack += sample.kernel.size() >= 3 && (sample.kernel[0] >> 63) == 1;
    whole += (sample.head.ip >> 63) == 0 && sample.head.stop == WIRE_STOP_END &&
             HasReturnAddress(sample, target.facts().middle_returns_to);
  }
  setting.notes += absl::StrCat(" ", in_kernel, " in the kernel of ", recording->samples.size(), ", ",
                                with_kernel_stack, " with kernel stack, ", whole, " with whole user chain");
  RETURN_IF_ERROR(Expect(in_kernel > 20, "only ", in_kernel, " samples in system calls"));
  RETURN_IF_ERROR(
      Expect(with_kernel_stack * 100 >= in_kernel * 97, with_kernel_stack, " kernel stacks of ", in_kernel));
  return Expect(whole * 100 >= in_kernel * 97, whole, " whole user chains of ", in_kernel);
}

absl::Status GoesOnWhereTheFramePointerHoldsData(ScenarioSetting& setting) {
  Target target(Behaviour::kDataInFp);
  const auto recording = Record(Filtered(), target, setting.seconds, setting.frequency);
  if (!recording.ok()) return recording.status();
  uint64_t user = 0;
  uint64_t whole = 0;
  for (const DecodedSample& sample : recording->samples) {
    if ((sample.head.flags & WIRE_SAMPLE_IN_KERNEL) != 0) continue;
    ++user;
    // The test does not say which of the pointers it follows: calls from before have left theirs. The words of all
    // frames must be there.
    const auto has = [&](uint64_t word) {
      return std::find(sample.user_words.begin(), sample.user_words.end(), word) != sample.user_words.end();
    };
    whole += has(target.facts().leaf_returns_to) && has(target.facts().middle_returns_to) && has(kGapPattern);
  }
  setting.notes += absl::StrCat(" ", whole, " of ", user, " whole");
  return Expect(user > 20 && whole + 2 >= user, whole, " whole chains of ", user);
}

absl::Status GivesAProgramWithABeatItsShare(ScenarioSetting& setting) {
  // A clock of exactly 500 Hz would meet 1 or 2 of its 3 ms in each beat, always the same: 0.67 or 1.33 of its share.
  setting.frequency = 500;
  Target target(Behaviour::kBeat);
  double cpu = 0;
  const auto recording = Record(Filtered(), target, setting.seconds, setting.frequency, &cpu);
  if (!recording.ok()) return recording.status();
  return CheckRate(setting, recording->samples.size(), cpu);
}

absl::Status DeliversKernelThreadsAndAccountsForAllHits(ScenarioSetting& setting) {
  Target target(Behaviour::kFreeMaps);
  const auto recording = Record(SamplerOptions(), target, setting.seconds, setting.frequency);
  if (!recording.ok()) return recording.status();
  uint64_t kernel_threads = 0;
  for (const DecodedSample& sample : recording->samples) {
    RETURN_IF_ERROR(Expect(sample.head.tid != 0, "the idle task was sent"));
    if ((sample.head.flags & WIRE_SAMPLE_KTHREAD) == 0) continue;
    ++kernel_threads;
    RETURN_IF_ERROR(Expect(sample.frames.empty() && sample.head.ip == 0 && !sample.kernel.empty(),
                           "a kernel thread with user stack or without kernel stack"));
  }
  const double nominal = recording->seconds * setting.frequency * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  setting.notes += absl::StrFormat(" %d of kernel threads, %d idle, %d hits of %.0f nominal", kernel_threads,
                                   recording->counters.idle, recording->counters.hits, nominal);
  RETURN_IF_ERROR(Expect(kernel_threads > 0, "no sample of a kernel thread"));
  RETURN_IF_ERROR(Expect(recording->counters.filtered == 0, "filtered without a filter"));
  return Expect(static_cast<double>(recording->counters.hits) > setting.least_share / 2 * nominal, "only ",
                recording->counters.hits, " hits");
}

absl::Status CountsWhatATinyRingLoses(ScenarioSetting& setting) {
  SamplerOptions options = Filtered();
  options.ring_bytes = 16384;  // a few samples
  options.frequency_hz = setting.frequency;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  Target target(Behaviour::kBurn);
  RETURN_IF_ERROR((*sampler)->Track(target.pid()));
  RETURN_IF_ERROR((*sampler)->Start());
  target.Go();
  for (const uint64_t give_up = SystemClock().Now().ns + kLongNs;
       target.UsedSeconds() < setting.seconds / 2 && SystemClock().Now().ns < give_up;) {
    Sleep(0.05);  // nobody reads
  }
  const double cpu = target.Stop();  // first, so that it does not run where nobody samples
  (*sampler)->StopSampling();
  uint64_t received = 0;
  (*sampler)->Drain([&](std::span<const std::byte>) { ++received; });
  const wire_counters counters = (*sampler)->counters();
  setting.notes += absl::StrCat(" ", received, " received, ", counters.drops[WIRE_DROP_RING_FULL], " lost");
  RETURN_IF_ERROR(Expect(received > 0 && counters.drops[WIRE_DROP_RING_FULL] > 10, "nothing was lost"));
  RETURN_IF_ERROR(Expect(received == counters.sent, received, " received, ", counters.sent, " sent"));
  return CheckRate(setting, received + TotalDrops(counters), cpu);
}

absl::Status ChangesItsRate(ScenarioSetting& setting) {
  SamplerOptions options = Filtered();
  options.frequency_hz = setting.frequency;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  Target target(Behaviour::kBurn);
  RETURN_IF_ERROR((*sampler)->Track(target.pid()));
  RETURN_IF_ERROR((*sampler)->Start());
  target.Go();
  // For the same time of the target at the full rate, at a quarter of it, and at the full one again.
  std::vector<uint64_t> counts;
  std::vector<double> rates;
  for (const int divisor : {1, 4, 1}) {
    RETURN_IF_ERROR((*sampler)->SetFrequency(setting.frequency / divisor));
    (*sampler)->Drain([](std::span<const std::byte>) {});
    const double before = target.UsedSeconds();
    double used = 0;
    for (const uint64_t give_up = SystemClock().Now().ns + kLongNs;
         used < setting.seconds / 2 && SystemClock().Now().ns < give_up; used = target.UsedSeconds() - before) {
      Sleep(0.05);
    }
    counts.push_back(0);
    (*sampler)->Drain([&](std::span<const std::byte>) { ++counts.back(); });
    rates.push_back(static_cast<double>(counts.back()) / (target.UsedSeconds() - before));
  }
  target.Stop();
  setting.notes += absl::StrCat(" ", counts[0], ", ", counts[1], ", ", counts[2], " samples");
  for (const size_t full : {0, 2}) {
    const double factor = rates[full] / std::max(rates[1], 0.1);
    RETURN_IF_ERROR(Expect(factor > 2.5 && factor < 6.5, "a quarter of the rate gave one in ", factor));
  }
  return absl::OkStatus();
}

absl::Status FollowsAChildNobodyAnnounced(ScenarioSetting& setting) {
  for (const bool follow : {true, false}) {
    Target target(Behaviour::kForkThenBurn);
    SamplerOptions options = Filtered();
    options.follow_children = follow;
    const auto recording = Record(options, target, setting.seconds / 2, setting.frequency);
    if (!recording.ok()) return recording.status();
    const auto of_child =
        std::count_if(recording->samples.begin(), recording->samples.end(), [&](const DecodedSample& sample) {
          return sample.head.tgid == static_cast<uint32_t>(target.facts().grandchild.load());
        });
    setting.notes += absl::StrCat(" ", of_child, follow ? " of the child when followed," : " when not");
    RETURN_IF_ERROR(Expect(follow ? of_child > 20 : of_child == 0, of_child, " samples of the child"));
  }
  return absl::OkStatus();
}

absl::Status StopsAtTheFrameLimit(ScenarioSetting& setting) {
  for (const uint32_t limit : {512u, 1024u}) {
    Target target(Behaviour::kRecurse);
    SamplerOptions options = Filtered();
    options.max_frames = limit;
    const auto recording = Record(options, target, setting.seconds / 2, setting.frequency);
    if (!recording.ok()) return recording.status();
    uint64_t right = 0;
    for (const DecodedSample& sample : recording->samples) {
      const auto repeated = std::count_if(sample.frames.begin(), sample.frames.end(), [&](const DecodedFrame& frame) {
        return frame.return_address == target.facts().recursion_returns_to;
      });
      right += limit == 512 ? sample.head.stop == WIRE_STOP_MAX_FRAMES && sample.frames.size() == 512 && repeated > 500
                            : sample.head.stop == WIRE_STOP_END && repeated == 700;
    }
    setting.notes += absl::StrCat(" limit ", limit, ": ", right, " of ", recording->samples.size(), ";");
    // The first samples may fall before the recursion is complete.
    RETURN_IF_ERROR(Expect(right > 20 && (right + 3) * 100 >= recording->samples.size() * 97, right, " of ",
                           recording->samples.size(), " right with a limit of ", limit));
  }
  return absl::OkStatus();
}

absl::Status TranslatesToAPidNamespace(ScenarioSetting& setting) {
  Target target(Behaviour::kBurn, CLONE_NEWPID);
  struct stat status {};
  const std::string link = absl::StrCat("/proc/", target.pid(), "/ns/pid");
  if (target.pid() < 0 || stat(link.c_str(), &status) != 0) return Wrong("no pid namespace could be made");
  SamplerOptions options;  // everybody
  options.pid_namespace_inode = static_cast<uint32_t>(status.st_ino);
  Target outsider(Behaviour::kBurn);
  outsider.Go();
  const auto recording = Record(options, target, setting.seconds, setting.frequency);
  if (!recording.ok()) return recording.status();
  uint64_t inside = 0;
  uint64_t outside = 0;
  for (const DecodedSample& sample : recording->samples) {
    const bool is_outside = (sample.head.flags & WIRE_SAMPLE_OUTSIDE) != 0;
    inside += !is_outside;
    outside += is_outside;
    RETURN_IF_ERROR(Expect(sample.head.tgid == (is_outside ? 0 : 1) && sample.head.tid == sample.head.tgid, "numbers ",
                           sample.head.tgid, "/", sample.head.tid));
  }
  setting.notes += absl::StrCat(" ", inside, " inside, ", outside, " outside");
  return Expect(inside > 20 && outside > 20, inside, " samples inside, ", outside, " outside");
}

absl::Status FilterHoldsBackEverybodyElse(ScenarioSetting& setting) {
  Target other(Behaviour::kBurn);
  other.Go();
  Target target(Behaviour::kBurn);
  const uint32_t pid = static_cast<uint32_t>(target.pid());
  const auto recording = Record(Filtered(), target, setting.seconds / 2, setting.frequency);
  if (!recording.ok()) return recording.status();
  for (const DecodedSample& sample : recording->samples) {
    RETURN_IF_ERROR(Expect(sample.head.tgid == pid, "a sample of ", sample.head.tgid));
  }
  setting.notes += absl::StrCat(" ", recording->counters.filtered, " held back");
  return Expect(recording->counters.filtered > 20, "only ", recording->counters.filtered, " held back");
}

absl::Status WakesTheReaderByThreshold(ScenarioSetting& setting) {
  SamplerOptions options = Filtered();
  options.frequency_hz = setting.frequency;
  options.ring_bytes = 256 * 1024;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  Target target(Behaviour::kRecurse);  // 14 KB a sample
  RETURN_IF_ERROR((*sampler)->Track(target.pid()));
  RETURN_IF_ERROR((*sampler)->Start());
  target.Go();
  const UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event wanted{.events = EPOLLIN | EPOLLET, .data = {}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, (*sampler)->ring_fd(), &wanted) != 0) return Wrong("epoll_ctl");
  uint64_t wakeups = 0;
  uint64_t records = 0;
  const SystemClock clock;
  const uint64_t end = clock.Now().ns + static_cast<uint64_t>(setting.seconds * 1e9), give_up = end + kLongNs;
  while (clock.Now().ns < end || (wakeups <= 2 && clock.Now().ns < give_up)) {
    if (epoll_wait(epoll.get(), &wanted, 1, 200) <= 0) continue;
    ++wakeups;
    (*sampler)->Drain([&](std::span<const std::byte>) { ++records; });
  }
  setting.notes += absl::StrCat(" ", records, " samples with ", wakeups, " wake-ups");
  RETURN_IF_ERROR(Expect(wakeups > 2, wakeups, " wake-ups"));
  return Expect(records > 2 * wakeups, records, " samples with ", wakeups, " wake-ups");
}

absl::Status LoadsWithLittleLockedMemory(ScenarioSetting& setting) {
  const bool accounted_by_cgroup = ProbeFeatures(ProbeDepth::kEverything).Has("bpf_get_current_task_btf");  // both 5.11
  setting.notes += accounted_by_cgroup ? "" : " (kernel before 5.11: must fail with a hint)";
  return InAnotherProcess([accounted_by_cgroup]() -> absl::Status {
    const rlimit little{64 * 1024, 64 * 1024};
    setrlimit(RLIMIT_MEMLOCK, &little);
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct data[2] = {};
    syscall(SYS_capget, &header, data);
    for (uint32_t* set : {&data[0].effective, &data[0].permitted, &data[0].inheritable})
      *set &= ~(1u << CAP_SYS_RESOURCE);
    if (syscall(SYS_capset, &header, data) != 0) return Wrong("capset");
    auto sampler = Sampler::Create(SamplerOptions(), ProbeFeatures());
    SideBand side_band;
    if (!accounted_by_cgroup) {
      return Expect(!sampler.ok() && HintOf(sampler.status()).find("locked memory") != std::string::npos,
                    "no hint about locked memory: ", sampler.status().message());
    }
    if (!sampler.ok()) return sampler.status();
    RETURN_IF_ERROR((*sampler)->Start());
    return side_band.Start();
  });
}

absl::Status SaysWhatAnOrdinaryUserLacks(ScenarioSetting& setting) {
  (void)setting;
  return InAnotherProcess([]() -> absl::Status {
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) return Wrong("setresuid");
    const FeatureReport features = ProbeFeatures();
    const auto sampler = Sampler::Create(SamplerOptions(), features);
    RETURN_IF_ERROR(Expect(absl::IsPermissionDenied(sampler.status()), "status: ", sampler.status().ToString()));
    RETURN_IF_ERROR(Expect(sampler.status().message().find("CAP_BPF and CAP_PERFMON are missing") != std::string::npos,
                           sampler.status().message()));
    RETURN_IF_ERROR(Expect(HintOf(sampler.status()).find("sudo") != std::string::npos, HintOf(sampler.status())));
    SideBand side_band;
    const absl::Status followed = side_band.Start();
    RETURN_IF_ERROR(Expect(absl::IsPermissionDenied(followed), "status: ", followed.ToString()));
    return Expect(HintOf(followed).find("sudo") != std::string::npos, HintOf(followed));
  });
}

absl::Status NamesKernelAddressesAsKallsymsDoes(ScenarioSetting& setting) {
  // Every 500th function of /proc/kallsyms, whose address is unique: aliases may be named either way.
  std::ifstream kallsyms("/proc/kallsyms");
  std::map<uint64_t, std::vector<std::string>> names_of;
  std::string line;
  while (std::getline(kallsyms, line)) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    uint64_t address = 0;
    if (fields.size() < 3 || (fields[1] != "t" && fields[1] != "T") || !absl::SimpleHexAtoi(fields[0], &address))
      continue;
    if (fields.size() == 3) names_of[address].push_back(fields[2]);
  }
  std::vector<uint64_t> addresses;
  size_t index = 0;
  for (const auto& [address, names] : names_of) {
    if (names.size() == 1 && address >> 63 == 1 && ++index % 500 == 0) addresses.push_back(address);
  }
  RETURN_IF_ERROR(Expect(addresses.size() > 20, "only ", addresses.size(), " usable symbols in /proc/kallsyms"));
  addresses.push_back(0x1000);  // nothing is there
  const uint64_t begin = SystemClock().Now().ns;
  const auto lookup = KernelNameLookup::Create();
  const auto names = lookup.ok() ? (*lookup)->LookUp(addresses) : lookup.status();
  const double milliseconds = static_cast<double>(SystemClock().Now().ns - begin) / 1e6;
  if (absl::IsUnimplemented(names.status())) {
    setting.notes += " not in this kernel";
    return Expect(!ProbeFeatures(ProbeDepth::kEverything).Has(kFeatureSyscallProgram), names.status().message());
  }
  if (!names.ok()) return names.status();
  RETURN_IF_ERROR(Expect(names->size() == addresses.size() && names->back().empty(), "an unmapped address has a name"));
  for (size_t i = 0; i + 1 < addresses.size(); ++i) {
    const std::string& expected = names_of[addresses[i]].front();
    RETURN_IF_ERROR(Expect((*names)[i] == expected, (*names)[i], " for ", expected));
  }
  setting.notes += absl::StrFormat(" %d names in %.1f ms", addresses.size(), milliseconds);
  return absl::OkStatus();
}

absl::Status SideBandTellsALifeInOrder(ScenarioSetting& setting) {
  SideBand side_band;
  RETURN_IF_ERROR(side_band.Start());
  const SystemClock clock;
  const uint64_t begin = clock.Now().ns;
  const long page = sysconf(_SC_PAGESIZE);
  const pid_t child = fork();
  if (child == 0) {
    const int self = open("/proc/self/exe", O_RDONLY);
    if (mmap(nullptr, static_cast<size_t>(page), PROT_READ | PROT_EXEC, MAP_PRIVATE, self, page) == MAP_FAILED)
      _exit(3);
    execl("/bin/true", "true", nullptr);
    _exit(4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return Wrong(absl::StrCat("the child ended with ", status));
  const uint64_t end = clock.Now().ns;
  std::vector<std::string> life;
  MonotonicTime last;
  bool ordered = true;
  bool self_mapped = false;
  const auto see = [&](const SideBandEvent& event) {
    ordered &= event.time >= last;
    last = event.time;
    if (event.pid != static_cast<uint32_t>(child) || event.time.ns < begin || event.time.ns > end) return;
    switch (event.kind) {
      case SideBandKind::kFork:
        if (event.parent_pid == static_cast<uint32_t>(getpid())) life.push_back("fork");
        break;
      case SideBandKind::kComm:
        life.push_back(absl::StrCat(event.exec ? "exec " : "comm ", event.comm));
        break;
      case SideBandKind::kMmap:
        self_mapped |= event.page_offset == static_cast<uint64_t>(page) && event.inode != 0 &&
                       (event.protection & PROT_EXEC) != 0 && event.length == static_cast<uint64_t>(page);
        if (life.empty() || life.back() != "mmap") life.push_back("mmap");
        break;
      case SideBandKind::kExit:
        life.push_back("exit");
        break;
      case SideBandKind::kLost:
        break;
    }
  };
  Sleep(0.02);
  side_band.Drain({clock.Now().ns - SideBand::kSettleNs}, see);
  side_band.Stop();
  side_band.Drain(MonotonicTime::Max(), see);
  std::string story;
  for (const std::string& event : life) absl::StrAppend(&story, story.empty() ? "" : " > ", event);
  setting.notes += absl::StrCat(" ", story);
  RETURN_IF_ERROR(Expect(ordered, "not in time order"));
  RETURN_IF_ERROR(Expect(self_mapped, "the executable mapping before exec is missing"));
  RETURN_IF_ERROR(Expect(side_band.counters().damaged == 0 && side_band.counters().lost == 0, "records were lost"));
  return Expect(story == "fork > mmap > exec true > mmap > exit", story);
}

absl::Status FollowsACpuThatComesBack(ScenarioSetting& setting) {
  const auto switch_cpu = [](const char* state) {
    const int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);
    const bool done = fd >= 0 && write(fd, state, 1) == 1;
    close(fd);
    return done;
  };
  SamplerOptions options = Filtered();
  options.frequency_hz = setting.frequency;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  SideBand side_band;
  RETURN_IF_ERROR((*sampler)->Start());
  RETURN_IF_ERROR(side_band.Start());
  const auto busy_ns = [] { return ReadHostCpuTime("/proc").value_or(HostCpuTime()).cpu_busy_ns; };
  std::vector<int> missed;  // CPUs whose first events nobody saw
  const auto see = [&](const SideBandEvent& event) {
    if (event.kind == SideBandKind::kLost) missed.push_back(event.cpu);
  };
  for (const bool online : {false, true}) {
    RETURN_IF_ERROR(Expect(switch_cpu(online ? "1" : "0"), "the second CPU can't be switched"));
    const absl::StatusOr<std::vector<int>> cpus = OnlineCpus();
    RETURN_IF_ERROR(cpus.status());
    RETURN_IF_ERROR((*sampler)->AttachNewCpus(*cpus, busy_ns));
    RETURN_IF_ERROR(side_band.AttachNewCpus(*cpus));
    RETURN_IF_ERROR(Expect((*sampler)->cpus().size() == (online ? 2u : 1u), "CPUs: ", (*sampler)->cpus().size()));
    side_band.Drain(MonotonicTime::Max(), see);
    RETURN_IF_ERROR(Expect(missed == std::vector<int>(online ? 1 : 0, 1), missed.size(), " CPUs said to be new"));
  }
  // So quickly that nobody sees it gone, as when a machine sleeps: the kernel has taken its events down all the same.
  RETURN_IF_ERROR(Expect(switch_cpu("0") && switch_cpu("1"), "the second CPU can't be switched"));
  Target target(Behaviour::kBurn);
  cpu_set_t second;
  CPU_ZERO(&second);
  CPU_SET(1, &second);
  sched_setaffinity(target.pid(), sizeof second, &second);
  RETURN_IF_ERROR((*sampler)->Track(target.pid()));
  target.Go();
  bool found = false;
  for (int look = 0; look < 60 && !found; ++look) {
    Sleep(0.25);
    const absl::StatusOr<std::vector<int>> cpus = OnlineCpus();
    RETURN_IF_ERROR(cpus.status());
    RETURN_IF_ERROR((*sampler)->AttachNewCpus(*cpus, busy_ns));
    const std::vector<int>& silent = (*sampler)->silent_cpus();
    RETURN_IF_ERROR(Expect(std::ranges::find(silent, 0) == silent.end(), "the first CPU is said to be silent"));
    found = silent == std::vector<int>{1};
    RETURN_IF_ERROR(side_band.AttachNewCpus(*cpus, silent));
  }
  RETURN_IF_ERROR(Expect(found, "nobody noticed that the second CPU had stopped"));
  side_band.Drain(MonotonicTime::Max(), see);
  RETURN_IF_ERROR(Expect(missed == std::vector<int>{1, 1}, "its missed events were not said"));
  Sleep(setting.seconds / 2);
  uint64_t on_second = 0;
  (*sampler)->Drain([&](std::span<const std::byte> record) { on_second += Decode(record).head.header.cpu == 1; });
  setting.notes += absl::StrCat(" ", on_second, " samples of the CPU that came back");
  return Expect(on_second > 20, on_second, " samples of the CPU that came back");
}

// The functions that hooks sit on: called as a runtime's are, with arguments in registers. Not inlined, not merged.
extern "C" __attribute__((noinline, used)) uint64_t HookedCall(uint64_t first, uint64_t second, uint64_t third) {
  asm volatile("" : "+r"(first), "+r"(second), "+r"(third)::"memory");
  return first + second + third;
}

absl::StatusOr<uint64_t> FileOffsetOf(uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    uint64_t begin = 0, end = 0, offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && begin <= address && address < end) {
      return address - begin + offset;
    }
  }
  return Wrong("no mapping holds the function");
}

absl::StatusOr<UniqueFd> ProbeHookedCall(Sampler& sampler) {
  const absl::StatusOr<uint64_t> offset = FileOffsetOf(reinterpret_cast<uint64_t>(&HookedCall));
  if (!offset.ok()) return offset.status();
  return sampler.AttachHook({WIRE_HOOK_SUSPEND, HookForm::kPlain, *offset}, "/proc/self/exe");
}

absl::Status HooksReportCallsWithTheirStacks(ScenarioSetting& setting) {
  SamplerOptions options = Filtered();
  options.frequency_hz = setting.frequency;
  options.suspension_hooks = options.jit_hooks = options.jit_stacks = true;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const absl::StatusOr<uint64_t> offset = FileOffsetOf(reinterpret_cast<uint64_t>(&HookedCall));
  if (!offset.ok()) return offset.status();
  std::vector<UniqueFd> probes;
  for (int hook = 1; hook <= WIRE_HOOK_COMPILED; ++hook) {
    absl::StatusOr<UniqueFd> probe =
        (*sampler)->AttachHook({static_cast<wire_hook>(hook), HookForm::kPlain, *offset}, "/proc/self/exe");
    if (!probe.ok()) return probe.status();
    probes.push_back(*std::move(probe));
  }
  RETURN_IF_ERROR(
      Expect((*sampler)->AttachHook({WIRE_HOOK_GC_END, HookForm::kMember, *offset}, "/proc/self/exe").ok(), "member"));
  constexpr uint64_t kCalls = 200;
  for (uint64_t i = 0; i < kCalls; ++i) HookedCall(i, 1, 0);  // of no tracked process
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  RETURN_IF_ERROR((*sampler)->Start());  // samples interrupt hooks
  const struct { uint64_t method = 0xfeed; } info;
  for (uint64_t i = 0; i < kCalls; ++i) HookedCall(i, 1, reinterpret_cast<uint64_t>(&info));
  (*sampler)->StopSampling();
  std::map<uint32_t, uint64_t> events;
  uint64_t compiled = 0, stacks = 0, wrong = 0, last_compiled = 0;
  (*sampler)->Drain([&](std::span<const std::byte> record) {
    wire_header header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.kind == WIRE_COMPILED) {
      ++compiled;
      last_compiled = header.time_ns;
    } else if (header.kind == WIRE_COMPILED_STACK) {
      const DecodedSample sample = Decode(record);
      ++stacks;
      wrong += sample.head.header.time_ns != last_compiled || sample.head.tgid != static_cast<uint32_t>(getpid()) ||
               sample.frames.size() < 2;
    } else if (header.kind == WIRE_RUNTIME_EVENT) {
      wire_runtime_event event;
      std::memcpy(&event, record.data(), sizeof event);
      const uint64_t number = events[event.hook]++;
      if (event.hook == WIRE_HOOK_SUSPEND || event.hook == WIRE_HOOK_GC_START) wrong += event.values[0] != number;
      if (event.hook == WIRE_HOOK_COMPILE) wrong += event.values[1] != info.method;
      wrong += event.tgid != static_cast<uint32_t>(getpid());
    }
  });
  probes.clear();
  const wire_counters counters = (*sampler)->counters();
  setting.notes += absl::StrCat(" ", compiled, " compiled, ", stacks, " stacks, ", counters.hook_hits, " hits, ",
                                counters.hook_filtered, " filtered, ", counters.hook_lost, " lost");
  RETURN_IF_ERROR(Expect(wrong == 0, wrong, " wrong records"));
  RETURN_IF_ERROR(Expect(compiled == kCalls && stacks == kCalls, compiled, " compiled, ", stacks, " stacks"));
  for (int hook = 1; hook < WIRE_HOOK_COMPILED; ++hook) {
    RETURN_IF_ERROR(Expect(events[static_cast<uint32_t>(hook)] == kCalls, events[static_cast<uint32_t>(hook)],
                           " events of hook ", hook));
  }
  RETURN_IF_ERROR(Expect(counters.hook_lost == 0, counters.hook_lost, " lost"));
  uint64_t of_jit = 0, of_runtime = 0;
  for (const HitsOfOthers& other : (*sampler)->HookHitsOfOthers()) {
    (other.who.part == WIRE_PART_COMPILATIONS ? of_jit : of_runtime) += other.hits;
  }
  RETURN_IF_ERROR(Expect(of_jit == 2 * kCalls && of_runtime == (WIRE_HOOK_COMPILED - 2) * kCalls, of_jit, " and ",
                         of_runtime, " hits of who is not followed"));
  return Expect(counters.hook_hits == counters.hook_filtered + counters.hook_sent &&
                    counters.hook_sent == WIRE_HOOK_COMPILED * kCalls,
                counters.hook_hits, " hits, ", counters.hook_filtered, " filtered, ", counters.hook_sent, " sent");
}

extern "C" __attribute__((noinline, used)) uint64_t HookedSuspend(uint64_t reason) {
  asm volatile("" : "+r"(reason)::"memory");
  return reason;
}

// The places of HookedCall's arguments, by the calling convention and DWARF's numbers of registers.
uint64_t CookieOfArguments() {
#if defined(__x86_64__)
  constexpr uint64_t kFirst = 5, kThird = 1;
#else
  constexpr uint64_t kFirst = 0, kThird = 2;
#endif
  const auto place = [](wire_place kind, uint64_t number) { return uint64_t{kind} << WIRE_PLACE_NUMBER_BITS | number; };
  return place(WIRE_PLACE_REGISTER, kFirst) | place(WIRE_PLACE_CONSTANT, WIRE_HEAP_LARGE) << WIRE_PLACE_BITS |
         place(WIRE_PLACE_REGISTER, kThird) << 2 * WIRE_PLACE_BITS;
}

struct AllocationsSeen {
  uint64_t records = 0, stacks = 0, types = 0, wrong = 0, sum = 0;
  double told = 0;  // by the records and what each stands for
};

AllocationsSeen DrainAllocations(Sampler& sampler, uint64_t type) {
  AllocationsSeen seen;
  uint64_t last = 0, last_with_weight = 0;
  sampler.Drain([&](std::span<const std::byte> record) {
    wire_header header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.kind == WIRE_ALLOCATION_STACK) {
      ++seen.stacks;
      seen.wrong += header.time_ns != last || Decode(record).frames.size() < 2;
    }
    if (header.kind != WIRE_ALLOCATION) return;
    wire_allocation allocation;
    std::memcpy(&allocation, record.data(), sizeof allocation);
    ++seen.records;
    seen.sum = allocation.total_bytes;
    seen.told += static_cast<double>(allocation.bytes) * allocation.weight / WIRE_ALLOCATION_ONE;
    if (allocation.type_before != 0) {
      ++seen.types;
      seen.wrong += allocation.type_before != type || allocation.time_before != last_with_weight;
    }
    seen.wrong += allocation.heap != WIRE_HEAP_LARGE || allocation.tgid != static_cast<uint32_t>(getpid());
    last = header.time_ns;
    if (allocation.weight != 0) last_with_weight = header.time_ns;
  });
  return seen;
}

absl::Status AllocationsAreSummedUp(ScenarioSetting& setting) {
  const absl::StatusOr<uint64_t> offset = FileOffsetOf(reinterpret_cast<uint64_t>(&HookedCall));
  const absl::StatusOr<uint64_t> suspend = FileOffsetOf(reinterpret_cast<uint64_t>(&HookedSuspend));
  if (!offset.ok()) return offset.status();
  if (!suspend.ok()) return suspend.status();
  const struct { uint64_t type = 0xfeed; } object;
  for (const HookForm form : {HookForm::kPlain, HookForm::kInside}) {
    SamplerOptions options = Filtered();
    options.frequency_hz = setting.frequency;
    options.allocation_hooks = true;
    auto sampler = Sampler::Create(options, ProbeFeatures());
    if (!sampler.ok()) return sampler.status();
    RETURN_IF_ERROR((*sampler)->Track(getpid()));
    absl::StatusOr<UniqueFd> noted =
        (*sampler)->AttachHook({WIRE_HOOK_SUSPEND, HookForm::kNoted, *suspend}, "/proc/self/exe");
    if (!noted.ok()) return noted.status();
    absl::StatusOr<UniqueFd> probe =
        (*sampler)->AttachHook({.hook = WIRE_HOOK_ALLOCATED,
                                .form = form,
                                .offset = *offset,
                                .cookie = form == HookForm::kInside ? CookieOfArguments() : 0},
                               "/proc/self/exe");
    if (!probe.ok() && form == HookForm::kInside && absl::IsUnimplemented(probe.status())) {
      setting.notes += " no cookies";
      continue;
    }
    if (!probe.ok()) return probe.status();
    constexpr uint64_t kCalls = 5000, kBytes = 110'000, kLargeHeap = 3;
    for (uint64_t i = 1; i < kCalls; ++i) HookedCall(kBytes, kLargeHeap, reinterpret_cast<uint64_t>(&object));
    Sleep(0.51);  // from then on the sum is told, whether a stack is due or not
    HookedCall(kBytes, kLargeHeap, reinterpret_cast<uint64_t>(&object));
    const AllocationsSeen seen = DrainAllocations(**sampler, object.type);
    setting.notes += absl::StrCat(" ", seen.records, " records, ", seen.stacks, " stacks, ", seen.types, " types");
    RETURN_IF_ERROR(Expect(seen.wrong == 0, seen.wrong, " wrong records"));
    RETURN_IF_ERROR(Expect(seen.sum == kCalls * kBytes, seen.sum, " bytes in the sum"));
    RETURN_IF_ERROR(Expect(seen.stacks > 0 && seen.types > 0, seen.stacks, " stacks, ", seen.types, " types"));
    const wire_counters counters = (*sampler)->counters();
    RETURN_IF_ERROR(Expect(counters.hook_hits == kCalls && counters.hook_sent == seen.records &&
                               counters.hook_summed == kCalls - seen.records,
                           counters.hook_hits, " hits, ", counters.hook_sent, " sent, ", counters.hook_summed,
                           " summed"));
    HookedCall(uint64_t{1} << 62, kLargeHeap, 0);  // no runtime says that
    RETURN_IF_ERROR(
        Expect(DrainAllocations(**sampler, object.type).records == 0 && (*sampler)->counters().hook_rate_limited == 1,
               "an amount that cannot be was taken"));
    // In calmer times each hit is sent. An object that was allocated before a suspension has no type: it may have
    // moved.
    for (int i = 0; i < 20; ++i) {
      Sleep(0.011);
      HookedCall(kBytes, kLargeHeap, reinterpret_cast<uint64_t>(&object));
    }
    DrainAllocations(**sampler, object.type);
    HookedSuspend(1);
    HookedCall(kBytes, kLargeHeap, reinterpret_cast<uint64_t>(&object));
    const AllocationsSeen after = DrainAllocations(**sampler, object.type);
    RETURN_IF_ERROR(Expect(after.records == 1 && after.types == 0, after.records, " records, ", after.types,
                           " types of objects that may have moved"));
  }
  return absl::OkStatus();
}

// Stays on the CPU that it is on until this goes.
class OnOneCpu {
 public:
  OnOneCpu() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  OnOneCpu(const OnOneCpu&) = delete;
  OnOneCpu& operator=(const OnOneCpu&) = delete;
  ~OnOneCpu() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

SamplerOptions OfAllocations(const ScenarioSetting& setting) {
  SamplerOptions options = Filtered();
  options.frequency_hz = setting.frequency;
  options.allocation_hooks = true;
  return options;
}

// Follows this process, in which each HookedCall is an allocation.
struct AllocationProbe {
  std::unique_ptr<Sampler> sampler;
  UniqueFd probe;
};
absl::StatusOr<AllocationProbe> ProbeAllocations(const SamplerOptions& options) {
  ASSIGN_OR_RETURN(const uint64_t offset, FileOffsetOf(reinterpret_cast<uint64_t>(&HookedCall)));
  AllocationProbe made;
  ASSIGN_OR_RETURN(made.sampler, Sampler::Create(options, ProbeFeatures()));
  RETURN_IF_ERROR(made.sampler->Track(getpid()));
  ASSIGN_OR_RETURN(made.probe,
                   made.sampler->AttachHook({WIRE_HOOK_ALLOCATED, HookForm::kPlain, offset}, "/proc/self/exe"));
  return made;
}

// Looks at the second of two bursts. The first one taught its CPU the pace of the second. Both are longer than a few
// windows of that pace, which are 10 ms.
absl::StatusOr<uint64_t> SentInASecondBurst(const SamplerOptions& options) {
  const OnOneCpu on_one_cpu;
  constexpr uint64_t kFirst = 40'000, kSecond = 100'000, kBytes = 110'000;
  ASSIGN_OR_RETURN(const AllocationProbe probed, ProbeAllocations(options));
  for (uint64_t i = 0; i < kFirst; ++i) HookedCall(kBytes, 0, 0);
  const uint64_t before = probed.sampler->counters().hook_sent;
  for (uint64_t i = 0; i < kSecond; ++i) HookedCall(kBytes, 0, 0);
  return probed.sampler->counters().hook_sent - before;
}

absl::Status AllocationsAreThinned(ScenarioSetting& setting) {
  SamplerOptions options = OfAllocations(setting);
  const absl::StatusOr<uint64_t> usual = SentInASecondBurst(options);
  if (!usual.ok()) return usual.status();
  options.allocation_thinning = 100;
  const absl::StatusOr<uint64_t> thinned = SentInASecondBurst(options);
  if (!thinned.ok()) return thinned.status();
  setting.notes += absl::StrCat(" ", *usual, " sent, thinned ", *thinned);
  // Each is chosen by chance: 40 and more on average, and a hundredth of these.
  return Expect(*usual >= 15 && *thinned < *usual / 3, *thinned, " of ", *usual, " are left");
}

// Claims of 1 TB come between the hits of a usual program, on its CPU. All processes share the CPU's pace.
absl::Status AllocationsOfOneLeaveOthersTheirStacks(ScenarioSetting& setting) {
  const OnOneCpu on_one_cpu;
  constexpr int kCalls = 120;
  constexpr uint64_t kClaim = uint64_t{1} << 40, kBytes = 110'000;
  ASSIGN_OR_RETURN(const AllocationProbe probed, ProbeAllocations(OfAllocations(setting)));
  for (int i = 0; i < kCalls; ++i) {
    HookedCall(kClaim, 3, 0);
    Sleep(0.011);  // the pace's window is over
    HookedCall(kBytes, 0, 0);
    Sleep(0.011);
  }
  int chosen = 0;
  double told = 0;
  probed.sampler->Drain([&](std::span<const std::byte> record) {
    wire_allocation allocation;
    if (record.size() < sizeof allocation) return;
    std::memcpy(&allocation, record.data(), sizeof allocation);
    if (allocation.header.kind != WIRE_ALLOCATION || allocation.weight == 0 || allocation.bytes != kBytes) return;
    ++chosen;
    told += static_cast<double>(allocation.bytes) * allocation.weight / WIRE_ALLOCATION_ONE;
  });
  const double share = told / (kBytes * kCalls);
  setting.notes += absl::StrFormat(" %d of %d chosen, for %.2f of the bytes", chosen, kCalls, share);
  // Some 50 are chosen, each by chance: the deviation is 11 %.
  return Expect(chosen > 20 && share > 0.4 && share < 1.6, chosen, " were chosen, and stand for ", share, " of all");
}

absl::Status AllocationsThatNoRecordToldAreRead(ScenarioSetting& setting) {
  ASSIGN_OR_RETURN(const AllocationProbe probed, ProbeAllocations(OfAllocations(setting)));
  probed.sampler->ReadAllocationSum(getpid());
  RETURN_IF_ERROR(Expect(DrainAllocations(*probed.sampler, 0).records == 0, "a sum of nothing"));
  constexpr uint64_t kCalls = 5000, kBytes = 110'000, kLargeHeap = 3;
  for (uint64_t i = 0; i < kCalls; ++i) HookedCall(kBytes, kLargeHeap, 0);
  const uint64_t told = DrainAllocations(*probed.sampler, 0).sum;
  probed.sampler->ReadAllocationSum(getpid());
  const uint64_t read = DrainAllocations(*probed.sampler, 0).sum;
  setting.notes += absl::StrCat(" ", told, " bytes were told, ", read, " read");
  return Expect(std::max(told, read) == kCalls * kBytes, told, " bytes were told, ", read, " read");
}

// The knowledge that a runtime of .NET 9 or newer has of an exception, at the distances from the frame iterator that
// wire.h has.
class MadeUpException {
 public:
  MadeUpException(uint8_t kind, uint8_t pass, const std::byte* context, const std::byte* fault) {
    static const struct { uint64_t type = kType; } object;
    Put(WIRE_EXINFO_OBJECT, reinterpret_cast<uint64_t>(&object));
    Put(WIRE_EXINFO_CONTEXT, reinterpret_cast<uint64_t>(context));
    Put(WIRE_EXINFO_FAULT_CONTEXT, reinterpret_cast<uint64_t>(fault));
    Put(WIRE_EXINFO_KIND, kind);
    Put(WIRE_EXINFO_PASS, pass);
  }
  uint64_t iterator() const { return reinterpret_cast<uint64_t>(bytes_.data()) + kBefore; }

  static constexpr uint64_t kType = 0xfeed0;

 private:
  static constexpr size_t kBefore = 256;
  template <typename T>
  void Put(int distance, T value) {
    std::memcpy(bytes_.data() + kBefore + distance, &value, sizeof value);
  }

  alignas(8) std::array<std::byte, kBefore + 64> bytes_{};
};

// The registers of the function that is at `ip`, with the caller's frame; as a runtime notes them.
std::array<std::byte, 0x500> MadeUpContext(uint64_t ip) {
  std::array<std::byte, 0x500> context{};
  const auto put = [&](size_t at, auto value) { std::memcpy(context.data() + at, &value, sizeof value); };
  const auto frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
#if defined(__x86_64__)
  put(0x30, uint32_t{0x10000f});
  put(0x98, frame);  // rsp
  put(0xa0, frame);  // rbp
  put(0xf8, ip);
#else
  put(0, uint32_t{0x40000f});
  put(0xf0, frame);   // x29
  put(0x100, frame);  // sp
  put(0x108, ip);
#endif
  return context;
}

absl::Status ExceptionsHaveTheirThrower(ScenarioSetting& setting) {
  const absl::StatusOr<uint64_t> offset = FileOffsetOf(reinterpret_cast<uint64_t>(&HookedCall));
  if (!offset.ok()) return offset.status();
  SamplerOptions options = Filtered();
  options.frequency_hz = setting.frequency;
  options.exception_hooks = true;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  absl::StatusOr<UniqueFd> probe =
      (*sampler)->AttachHook({WIRE_HOOK_THROWN, HookForm::kPlain, *offset}, "/proc/self/exe");
  if (!probe.ok()) return probe.status();
#if defined(__x86_64__)
  constexpr uint64_t kBack = 1;
#else
  constexpr uint64_t kBack = 4;
#endif
  constexpr uint8_t kThrow = 1;
  const uint64_t call = reinterpret_cast<uint64_t>(&HookedSuspend) + 8, fault = call + 4;
  const auto thrown_at = MadeUpContext(call), failed_at = MadeUpContext(fault), other = thrown_at;
  struct Throw {
    uint8_t kind, pass;
    const std::byte* said;
    uint64_t type;  // 0: none is expected
    uint64_t ip;    // of the stack; 0: likewise
    bool rethrown = false;
  };
  const std::vector<Throw> throws = {
      {kThrow, 1, thrown_at.data(), MadeUpException::kType, call - kBack},
      {WIRE_EXKIND_FAULT, 1, thrown_at.data(), MadeUpException::kType, fault},
      {kThrow | WIRE_EXKIND_RETHROWN, 1, thrown_at.data(), MadeUpException::kType, 0, true},
      {kThrow, 1, other.data(), 0, 0},  // not the context that the exception has: it is arranged in another way
      {kThrow, 0, thrown_at.data(), 0, 0},
  };
  for (const Throw& one : throws) {
    const MadeUpException exception(one.kind, one.pass, thrown_at.data(), failed_at.data());
    HookedCall(exception.iterator(), reinterpret_cast<uint64_t>(one.said), 0);
  }
  const MadeUpException second_pass(kThrow, 2, thrown_at.data(), failed_at.data());
  HookedCall(second_pass.iterator(), reinterpret_cast<uint64_t>(thrown_at.data()), 0);

  std::vector<wire_exception> records;
  std::map<uint64_t, uint64_t> ips;  // of stacks, by their times
  (*sampler)->Drain([&](std::span<const std::byte> record) {
    wire_header header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.kind == WIRE_EXCEPTION_STACK) ips[header.time_ns] = Decode(record).head.ip;
    if (header.kind == WIRE_EXCEPTION) std::memcpy(&records.emplace_back(), record.data(), sizeof(wire_exception));
  });
  RETURN_IF_ERROR(Expect(records.size() == throws.size(), records.size(), " records"));
  for (size_t i = 0; i < throws.size(); ++i) {
    const wire_exception& record = records[i];
    const uint32_t flags =
        (throws[i].rethrown ? WIRE_EXCEPTION_RETHROWN : 0u) | (throws[i].ip != 0 ? WIRE_EXCEPTION_HAS_STACK : 0u);
    const uint64_t ip = ips.contains(record.header.time_ns) ? ips[record.header.time_ns] : 0;
    RETURN_IF_ERROR(Expect(record.type == throws[i].type && record.flags == flags && ip == throws[i].ip, "record ", i,
                           ": type ", record.type, ", flags ", record.flags, ", ip ", ip, " instead of ",
                           throws[i].ip));
  }
  const wire_counters counters = (*sampler)->counters();
  return Expect(
      counters.hook_hits == throws.size() + 1 && counters.hook_summed == 1 && counters.hook_sent == throws.size(),
      counters.hook_hits, " hits, ", counters.hook_summed, " summed, ", counters.hook_sent, " sent");
}

// The other threads of a process whose first thread is gone are seen all the same.
absl::Status HooksSeeAProcessWithoutItsFirstThread(ScenarioSetting& setting) {
  constexpr uint64_t kCalls = 50;
  int start[2], done[2];
  if (pipe(start) != 0 || pipe(done) != 0) return ErrnoError(errno, "pipe");
  const pid_t child = fork();
  if (child == 0) {
    std::thread([&] {
      char byte = 0;
      (void)!read(start[0], &byte, 1);
      for (uint64_t i = 0; i < kCalls; ++i) HookedCall(i, 1, 0);
      (void)!write(done[1], &byte, 1);
      pause();
    }).detach();
    syscall(SYS_exit, 0);  // of this thread alone
  }
  const auto state = [child] {
    std::ifstream stat(absl::StrCat("/proc/", child, "/stat"));
    std::string pid, comm, word;
    stat >> pid >> comm >> word;
    return word;
  };
  while (state() != "Z") Sleep(0.001);
  SamplerOptions options = Filtered();
  options.suspension_hooks = true;
  options.only_process = child;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const absl::StatusOr<UniqueFd> probe = ProbeHookedCall(**sampler);
  if (!probe.ok()) return probe.status();
  RETURN_IF_ERROR((*sampler)->Track(child));
  char byte = 'g';
  const bool went = write(start[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 1;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int fd : {start[0], start[1], done[0], done[1]}) close(fd);
  RETURN_IF_ERROR(Expect(went, "the child has called"));
  const wire_counters counters = (*sampler)->counters();
  setting.notes += absl::StrCat(" ", counters.hook_sent, " hits");
  return Expect(counters.hook_sent == kCalls, counters.hook_sent, " hits");
}

// All threads of the process that is asked for run into the probe, and no other process does.
absl::Status HooksAreBoundToTheOnlyProcess(ScenarioSetting& setting) {
  utsname kernel{};
  int major = 0, minor = 0;
  if (uname(&kernel) != 0 || std::sscanf(kernel.release, "%d.%d", &major, &minor) != 2) return Wrong("uname");
  const bool bound = UprobesBindToProcess();
  RETURN_IF_ERROR(Expect(bound || std::pair(major, minor) < std::pair(6, 10), "this kernel can bind probes"));
  constexpr uint64_t kCalls = 50;
  int start[2], done[2];
  if (pipe(start) != 0 || pipe(done) != 0) return ErrnoError(errno, "pipe");
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    while (read(start[0], &byte, 1) == 1 && byte == 'g') {
      const auto call = [] {
        for (uint64_t i = 0; i < kCalls; ++i) HookedCall(i, 1, 0);
      };
      call();
      std::thread(call).join();
      if (write(done[1], &byte, 1) != 1) break;
    }
    _exit(0);
  }
  SamplerOptions options = Filtered();
  options.suspension_hooks = true;
  options.only_process = child;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const absl::StatusOr<UniqueFd> probe = ProbeHookedCall(**sampler);
  if (!probe.ok()) return probe.status();
  RETURN_IF_ERROR((*sampler)->Track(child));
  for (uint64_t i = 0; i < kCalls; ++i) HookedCall(i, 1, 0);
  char byte = 'g';
  const bool went = write(start[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 1;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int fd : {start[0], start[1], done[0], done[1]}) close(fd);
  RETURN_IF_ERROR(Expect(went, "the child has called"));
  const wire_counters counters = (*sampler)->counters();
  setting.notes += absl::StrCat(bound ? "" : " this kernel can't bind;", " ", counters.hook_sent, " hits, ",
                                counters.hook_filtered, " of others");
  return Expect(counters.hook_sent == 2 * kCalls && counters.hook_filtered == (bound ? 0 : kCalls), counters.hook_sent,
                " hits, ", counters.hook_filtered, " of others");
}

absl::Status HooksOfOneProcessAreLimited(ScenarioSetting& setting) {
  SamplerOptions options = Filtered();
  options.suspension_hooks = true;
  options.hook_hits_a_second = 1000;
  options.hook_hits_at_once = 200;
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const absl::StatusOr<UniqueFd> probe = ProbeHookedCall(**sampler);
  if (!probe.ok()) return probe.status();
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  uint64_t sent = 0, last_limited = 0;
  const auto drain = [&] {
    (*sampler)->Drain([&](std::span<const std::byte> record) {
      wire_runtime_event event;
      std::memcpy(&event, record.data(), sizeof event);
      last_limited = event.missed & ~WIRE_MISSED_RATE_LIMITED;
      ++sent;
    });
  };
  const auto begin = std::chrono::steady_clock::now();
  constexpr uint64_t kCalls = 20'000;
  for (uint64_t i = 0; i < kCalls; ++i) HookedCall(i, 1, 0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  drain();
  const wire_counters counters = (*sampler)->counters();
  setting.notes += absl::StrCat(" ", sent, " sent in ", seconds, " s, ", counters.hook_rate_limited, " not");
  RETURN_IF_ERROR(
      Expect(counters.hook_hits == kCalls && counters.hook_rate_limited + sent == kCalls, "each is counted"));
  RETURN_IF_ERROR(Expect(sent >= 200 && static_cast<double>(sent) < 260 + 1000 * seconds, sent, " were sent"));
  RETURN_IF_ERROR(
      Expect((*sampler)->HookHitsMissed(getpid()) == counters.hook_rate_limited, "they are told when asked"));
  // One that comes when there is room again says how many are missing before it.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  HookedCall(0, 1, 0);
  drain();
  return Expect(last_limited == (*sampler)->counters().hook_rate_limited, last_limited, " are said to be missing");
}

absl::Status HooksTakeNoSamplesRoom(ScenarioSetting& setting) {
  SamplerOptions options = Filtered();
  options.frequency_hz = setting.frequency;
  options.suspension_hooks = true;
  options.hook_ring_bytes = 16384;
  options.ring_bytes = 64 << 20;  // an eighth of it holds all samples, so that they need not go before events
  auto sampler = Sampler::Create(options, ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const absl::StatusOr<UniqueFd> probe = ProbeHookedCall(**sampler);
  if (!probe.ok()) return probe.status();
  RETURN_IF_ERROR((*sampler)->Track(getpid()));
  RETURN_IF_ERROR((*sampler)->Start());
  // 100,000 events are more than ten times what the samples' ring would hold.
  constexpr uint64_t kCalls = 100'000;
  for (uint64_t i = 0; i < kCalls; ++i) HookedCall(i, 1, 0);  // nobody reads
  (*sampler)->StopSampling();
  uint64_t samples = 0, events = 0, last_ns = 0, late = 0;
  (*sampler)->Drain([&](std::span<const std::byte> record) {
    wire_header header;
    std::memcpy(&header, record.data(), sizeof header);
    ++(header.kind == WIRE_CPU_SAMPLE ? samples : events);
    // A hit takes its time before its place in the ring, and a sample may interrupt it there.
    late += header.time_ns + 1'000'000 < last_ns;
    last_ns = std::max<uint64_t>(last_ns, header.time_ns);
  });
  const wire_counters counters = (*sampler)->counters();
  setting.notes += absl::StrCat(" ", samples, " samples, ", events, " events, ", counters.hook_lost, " events lost");
  RETURN_IF_ERROR(Expect(counters.hook_hits == kCalls && events + counters.hook_lost == kCalls, "each is counted"));
  RETURN_IF_ERROR(Expect(events > 50 && counters.hook_lost > kCalls / 2, "the hooks' ring was full"));
  RETURN_IF_ERROR(Expect(TotalDrops(counters) == 0, TotalDrops(counters), " samples lost"));
  RETURN_IF_ERROR(Expect(samples > 0 && samples == counters.sent, samples, " samples, ", counters.sent, " sent"));
  return Expect(late == 0, late, " records out of the order of their times");
}

// A trap is more than a call, and no machine needs a tenth of a millisecond for one.
absl::Status MeasuresATrap(ScenarioSetting& setting) {
  const absl::StatusOr<uint64_t> first = MeasureTrapNs();
  if (!first.ok()) return first.status();
  const absl::StatusOr<uint64_t> second = MeasureTrapNs();
  if (!second.ok()) return second.status();
  setting.notes += absl::StrCat(" ", *first, " and ", *second, " ns");
  return Expect(std::min(*first, *second) > 50 && std::max(*first, *second) < 100'000, *first, " and ", *second, " ns");
}

const std::vector<Scenario>& LiveScenarios() {
  static const auto* const scenarios = new std::vector<Scenario>{
      {"SamplesABurningProcess", SamplesABurningProcess},
      {"WalksFromSavedRegistersInSystemCalls", WalksFromSavedRegistersInSystemCalls},
      {"GoesOnWhereTheFramePointerHoldsData", GoesOnWhereTheFramePointerHoldsData},
      {"GivesAProgramWithABeatItsShare", GivesAProgramWithABeatItsShare},
      {"DeliversKernelThreadsAndAccountsForAllHits", DeliversKernelThreadsAndAccountsForAllHits},
      {"CountsWhatATinyRingLoses", CountsWhatATinyRingLoses},
      {"ChangesItsRate", ChangesItsRate},
      {"FollowsAChildNobodyAnnounced", FollowsAChildNobodyAnnounced},
      {"StopsAtTheFrameLimit", StopsAtTheFrameLimit},
      {"TranslatesToAPidNamespace", TranslatesToAPidNamespace},
      {"FilterHoldsBackEverybodyElse", FilterHoldsBackEverybodyElse},
      {"WakesTheReaderByThreshold", WakesTheReaderByThreshold},
      {"LoadsWithLittleLockedMemory", LoadsWithLittleLockedMemory},
      {"SaysWhatAnOrdinaryUserLacks", SaysWhatAnOrdinaryUserLacks},
      {"NamesKernelAddressesAsKallsymsDoes", NamesKernelAddressesAsKallsymsDoes},
      {"SideBandTellsALifeInOrder", SideBandTellsALifeInOrder},
      {"HooksReportCallsWithTheirStacks", HooksReportCallsWithTheirStacks},
      {"AllocationsAreSummedUp", AllocationsAreSummedUp},
      {"WaitsAreToldWithTheirWakers", WaitsAreToldWithTheirWakers},
      {"ZombiesWaitForNothing", ZombiesWaitForNothing},
      {"AThreadThatWasNeverSwitchedHasRun", AThreadThatWasNeverSwitchedHasRun},
      {"ALookIsOfOneMoment", ALookIsOfOneMoment},
      {"AThreadThatIsWokenSoonWaitsForItsCpu", AThreadThatIsWokenSoonWaitsForItsCpu},
      {"AThreadThatIsQueuedFromTheBeginningWantsACpu", AThreadThatIsQueuedFromTheBeginningWantsACpu},
      {"ShortWaitsAreSummedUp", ShortWaitsAreSummedUp},
      {"WaitsOutsideOfTheNamespaceAreNoProcess", WaitsOutsideOfTheNamespaceAreNoProcess},
      {"AThreadWithAnothersNumberBeginsAnew", AThreadWithAnothersNumberBeginsAnew},
      {"ThreadsBeyondTheTableBeginAnew", ThreadsBeyondTheTableBeginAnew},
      {"ATableTellsWaitsWithTheirWakers", ATableTellsWaitsWithTheirWakers},
      {"StacksOfWaitsWakeTheReader", StacksOfWaitsWakeTheReader},
      {"ThreadsAreToldWithTheirCreator", ThreadsAreToldWithTheirCreator},
      {"WhoAwaitsIsCopied", WhoAwaitsIsCopied},
      {"AllocationsAreThinned", AllocationsAreThinned},
      {"AllocationsThatNoRecordToldAreRead", AllocationsThatNoRecordToldAreRead},
      {"AllocationsOfOneLeaveOthersTheirStacks", AllocationsOfOneLeaveOthersTheirStacks},
      {"ExceptionsHaveTheirThrower", ExceptionsHaveTheirThrower},
      {"HooksOfOneProcessAreLimited", HooksOfOneProcessAreLimited},
      {"HooksAreBoundToTheOnlyProcess", HooksAreBoundToTheOnlyProcess},
      {"HooksSeeAProcessWithoutItsFirstThread", HooksSeeAProcessWithoutItsFirstThread},
      {"HooksTakeNoSamplesRoom", HooksTakeNoSamplesRoom},
      {"MeasuresATrap", MeasuresATrap},
  };
  return *scenarios;
}

}  // namespace clrsampler::test_support
