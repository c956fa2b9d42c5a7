#include "cli/report_recording.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/pool_readings.h"
#include "cli/profile_options.h"
#include "cli/recorded_model.h"
#include "formats/profile/profile_reader.h"
#include "os/file_io.h"
#include "os/life_line.h"
#include "os/tape_answer.h"
#include "os/unique_fd.h"
#include "output/profile_json.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/recorder.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// This is enough to find the thread that delays a pause by some milliseconds. A sample costs 10 to 30 us of a CPU.
constexpr uint32_t kCpuFrequencyHz = 499;
constexpr uint32_t kWallFrequencyHz = 99;
constexpr uint32_t kCodeFrequencyHz = 99;
constexpr size_t kMaxRuntimeBytes = 64 << 20;
constexpr size_t kMaxSaidBytes = 64 << 10;

// A recording in a process of its own, and the files in memory that it writes to.
struct Part {
  ReportPart what = ReportPart::kCpu;
  pid_t child = -1;
  UniqueFd life;                              // of a pipe; the process ends with it
  UniqueFd profile, runtime, missing, error;  // missing: sentences; error: an absl::Status of a failure
};

absl::string_view WordOf(ReportPart part) {
  switch (part) {
    case ReportPart::kCpu:
    case ReportPart::kCode:
      return "CPU time";
    case ReportPart::kWaits:
      return "waits";
    case ReportPart::kAllocations:
      return "allocations";
    case ReportPart::kExceptions:
      return "exceptions";
  }
  return "";
}

RecordOptions OptionsOf(const ReportRecordingOptions& asked, ReportPart part) {
  RecordOptions options;
  options.pids = {asked.pid};
  options.duration_ns = asked.duration_ns;
  options.keep_samples = true;
  options.lines.wanted = asked.lines;
  switch (part) {
    case ReportPart::kCpu:
      options.frequency_hz = kCpuFrequencyHz;
      break;
    case ReportPart::kWaits:
      options.view = RecordView::kWall;
      options.frequency_hz = kWallFrequencyHz;
      options.wakers = true;
      break;
    case ReportPart::kAllocations:
      options.view = RecordView::kAllocations;
      break;
    case ReportPart::kExceptions:
      options.view = RecordView::kExceptions;
      break;
    case ReportPart::kCode:
      options.frequency_hz = kCodeFrequencyHz;
      options.keep_code = options.lines.wanted = options.lines.source_texts = true;
      break;
  }
  return options;
}

absl::Status CanWatch(Recorder& recorder, ReportPart part, uint32_t pid) {
  switch (part) {
    case ReportPart::kAllocations:
      return recorder.WatchesAllocationsOf(pid);
    case ReportPart::kExceptions:
      return recorder.WatchesExceptionsOf(pid);
    default:
      return absl::OkStatus();
  }
}

// This runs in the child. Pauses and compilations that can't be seen are no failure: the rest is worth having.
absl::Status Record(const ReportRecordingOptions& asked, const Part& part) {
  RecordOptions options = OptionsOf(asked, part.what);
  RuntimeTables runtime;
  if (part.what == ReportPart::kCpu) {
    options.on_pause = [&](const ObservedPause& observed) { runtime.Add(observed.pause, observed.culprits); };
    options.on_compilation = [&](const NamedCompilation& named) { runtime.Add(named); };
  }
  if (ReadsPool(options)) RETURN_IF_ERROR(ShareFileBroker(options));
  ASSIGN_OR_RETURN(std::unique_ptr<Recorder> recorder, Recorder::Create(options));
  RETURN_IF_ERROR(CanWatch(*recorder, part.what, asked.pid));
  bool sees_runtime = false;
  if (part.what == ReportPart::kCpu) {
    for (const absl::Status& seen :
         {recorder->WatchesPausesOf(asked.pid), recorder->WatchesCompilationsOf(asked.pid)}) {
      sees_runtime |= seen.ok();
      if (!seen.ok()) RETURN_IF_ERROR(WriteAll(part.missing.get(), absl::StrCat(seen.message(), "\n")));
    }
  }
  std::optional<PoolReadings> pool;
  if (ReadsPool(options)) pool.emplace(asked.pid, options.files.get());
  RETURN_IF_ERROR(EnterAgentSandbox(options, {}).status());
  RETURN_IF_ERROR(recorder->Run(nullptr));
  const std::string account = AccountJson(*recorder, options, pool ? pool->Numbers() : std::nullopt);
  ASSIGN_OR_RETURN(const ProfileModel model, RecordedModel(*recorder, options, account));
  RETURN_IF_ERROR(GiveUpRightsForCode(model, {}));
  if (sees_runtime) RETURN_IF_ERROR(WriteAll(part.runtime.get(), runtime.ToJson()));
  return ProfileJsonWriter().Write(model, [&](absl::string_view text) { return WriteAll(part.profile.get(), text); });
}

// `life`: the read end. A wish to get a signal at the parent's death would not do: the change of the user in the
// sandbox takes it back.
[[noreturn]] void RunChild(const ReportRecordingOptions& asked, const Part& part, const UniqueFd& life) {
  if (!EndWithPipe(life.get())) _exit(1);
  // The reader of the report's output must see nothing of this process.
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) dup2(nothing.get(), fd);
  const absl::Status recorded = Record(asked, part);
  if (recorded.ok()) _exit(0);
  TapeWriter error;
  TapeCodec<absl::Status>::Write(recorded, error);
  (void)WriteAll(part.error.get(), error.Take());
  _exit(1);
}

// `others`: those that run already.
absl::StatusOr<Part> Start(const ReportRecordingOptions& asked, ReportPart what, std::vector<Part>& others) {
  Part part;
  part.what = what;
  for (UniqueFd* file : {&part.profile, &part.runtime, &part.missing, &part.error}) {
    *file = UniqueFd(memfd_create("clrsampler-report", MFD_CLOEXEC));
    if (file->get() < 0) return ErrnoError(errno, "making a file in memory");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "making a pipe");
  const UniqueFd life(ends[0]);
  part.life = UniqueFd(ends[1]);
  part.child = fork();
  if (part.child < 0) return ErrnoError(errno, "starting a recording");
  if (part.child == 0) {
    part.life.reset();
    for (Part& other : others) other.life.reset();
    RunChild(asked, part, life);
  }
  return part;
}

absl::StatusOr<std::string> Written(const UniqueFd& file, size_t limit) {
  if (lseek(file.get(), 0, SEEK_SET) != 0) return ErrnoError(errno, "reading a recording");
  return ReadWholeFile(file.get(), limit);
}

// The process has ended with 0.
bool Ended(const Part& part) {
  int status = 0;
  while (waitpid(part.child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

absl::Status Failure(const Part& part) {
  const absl::StatusOr<std::string> said = Written(part.error, kMaxSaidBytes);
  absl::Status why = absl::AbortedError("the recording ended unexpectedly");
  if (said.ok() && !said->empty()) {
    TapeReader in(*said);
    why = TapeCodec<absl::Status>::Read(in);
  }
  const std::string hint = HintOf(why);
  return WithHint(absl::AbortedError(absl::StrCat(WordOf(part.what), " could not be recorded: ", why.message())),
                  hint.empty() ? "clrsampler doctor says what is in the way" : hint);
}

absl::Status Take(const Part& part, ReportRecording& recording) {
  ASSIGN_OR_RETURN(const std::string profile, Written(part.profile, kMaxProfileBytes));
  ASSIGN_OR_RETURN(ProfileModel model, ReadProfile(profile));
  recording.models.push_back(std::move(model));
  if (part.what != ReportPart::kCpu) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string missing, Written(part.missing, kMaxSaidBytes));
  for (const absl::string_view line : absl::StrSplit(missing, '\n', absl::SkipEmpty())) {
    recording.missing.push_back(absl::StrCat(line, "."));
  }
  ASSIGN_OR_RETURN(const std::string runtime, Written(part.runtime, kMaxRuntimeBytes));
  if (runtime.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(recording.runtime, RuntimeTables::FromJson(runtime));
  recording.has_runtime = true;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReportRecording> RecordForReport(const ReportRecordingOptions& options) {
  std::vector<Part> parts;
  absl::Status started;
  for (const ReportPart what : options.parts) {
    absl::StatusOr<Part> part = Start(options, what, parts);
    started.Update(part.status());
    if (part.ok()) parts.push_back(*std::move(part));
  }
  // A Ctrl-C is for the recordings, which all get it. They begin before this, with the caller's signal handlers.
  const auto interrupt = signal(SIGINT, SIG_IGN);
  ReportRecording recording;
  absl::Status first;
  for (const Part& part : parts) {
    const absl::Status taken = Ended(part) ? Take(part, recording) : Failure(part);
    if (taken.ok()) continue;
    first.Update(taken);
    // The other lines are a log of the kernel.
    const std::vector<absl::string_view> lines = absl::StrSplit(taken.message(), '\n');
    recording.missing.push_back(absl::StrCat(lines.front(), "."));
  }
  signal(SIGINT, interrupt);
  first.Update(started);
  if (recording.models.empty()) {
    return first.ok() ? absl::AbortedError("nothing was recorded") : first;
  }
  return recording;
}

}  // namespace clrsampler
