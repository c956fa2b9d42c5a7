#include "clr/jit_files.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "formats/proc/environ_text.h"
#include "formats/proc/stat_text.h"
#include "os/clock.h"
#include "os/tape_answer.h"

namespace clrsampler {
namespace {

uint64_t NowNs(clockid_t clock, Tape* tape) {
  return Taped(
      tape, [clock] { return clrsampler::NowNs(clock); }, "clock ", clock);
}

uint64_t Less(uint64_t from, uint64_t by) { return from > by ? from - by : 0; }

// Field 22, counted behind the command's closing bracket: a command may hold spaces and brackets.
std::optional<uint64_t> StartTicks(const TargetFiles& files) {
  const absl::StatusOr<std::string> text = files.ReadProc("stat", kMaxStatBytes);
  if (!text.ok()) return std::nullopt;
  const size_t bracket = text->rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*text).substr(bracket + 1), ' ', absl::SkipEmpty());
  uint64_t ticks = 0;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[19], &ticks)) return std::nullopt;
  return ticks;
}

}  // namespace

std::optional<std::string> JitdumpMarkerDirectory(const Mapping& mapping, uint32_t namespace_pid) {
  if (mapping.kind != MappingKind::kFile || namespace_pid == 0) return std::nullopt;
  absl::string_view path = mapping.path;
  const std::string name = absl::StrCat("/jit-", namespace_pid, ".dump");
  if (path.empty() || path[0] != '/' || !absl::ConsumeSuffix(&path, name)) return std::nullopt;
  return path.empty() ? std::string("/") : std::string(path);
}

std::optional<std::string> PerfMapDirectoryOfEnvironment(const TargetFiles& files) {
  const absl::StatusOr<std::string> environment = files.ReadProc("environ", kMaxEnvironmentBytes);
  if (!environment.ok()) return std::nullopt;
  for (absl::string_view variable : absl::StrSplit(*environment, '\0')) {
    if (!absl::ConsumePrefix(&variable, "DOTNET_PerfMapJitDumpPath=") &&
        !absl::ConsumePrefix(&variable, "COMPlus_PerfMapJitDumpPath=")) {
      continue;
    }
    while (variable.size() > 1 && variable.back() == '/') variable.remove_suffix(1);
    if (variable.empty() || variable[0] != '/') return std::nullopt;
    return std::string(variable);
  }
  return std::nullopt;
}

ProcessStart StartOf(const Process& process, MonotonicTime now) {
  Tape* const tape = process.files.tape();
  const uint64_t realtime_ns = NowNs(CLOCK_REALTIME, tape);
  const std::optional<uint64_t> ticks = StartTicks(process.files);
  if (!ticks.has_value()) {
    return {process.first_seen, Less(realtime_ns, Less(now.ns, process.first_seen.ns))};
  }
  // BOOTTIME runs on while the machine sleeps, MONOTONIC does not: the age is an upper bound for the latter, so the
  // start is never later than the truth. It is asked for last, since this thread may stand still between two questions.
  const uint64_t monotonic_ns = NowNs(CLOCK_MONOTONIC, tape);
  const uint64_t hertz = static_cast<uint64_t>(std::max<long>(sysconf(_SC_CLK_TCK), 1));
  const uint64_t started_ns = *ticks / hertz * kSecondNs + *ticks % hertz * (kSecondNs / hertz);
  const uint64_t age_ns = Less(NowNs(CLOCK_BOOTTIME, tape), started_ns);
  return {{Less(monotonic_ns, age_ns)}, Less(realtime_ns, age_ns)};
}

int64_t MonotonicOffsetOf(const TargetFiles& files) {
  const absl::StatusOr<std::string> text = files.ReadProc("timens_offsets", kMaxStatBytes);
  if (!text.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    if (fields.size() == 3 && fields[0] == "monotonic" && absl::SimpleAtoi(fields[1], &seconds) &&
        absl::SimpleAtoi(fields[2], &nanoseconds) && std::abs(seconds) < (int64_t{1} << 32)) {
      return seconds * static_cast<int64_t>(kSecondNs) + nanoseconds;
    }
  }
  return 0;
}

}  // namespace clrsampler
