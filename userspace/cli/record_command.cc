#include "cli/record_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "cli/cri_socket_option.h"
#include "cli/duration_option.h"
#include "cli/event_buffer_option.h"
#include "cli/event_source_command.h"
#include "cli/hook_budget_option.h"
#include "cli/lines_option.h"
#include "cli/names_option.h"
#include "cli/output_file.h"
#include "cli/pool_readings.h"
#include "cli/profile_options.h"
#include "cli/record_config.h"
#include "cli/record_results.h"
#include "cli/recorded_model.h"
#include "cli/ring_option.h"
#include "os/file_io.h"
#include "output/allocation_summary.h"
#include "output/event_summary.h"
#include "output/profile_writer.h"
#include "output/summary.h"
#include "output/wait_summary.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/recorder.h"
#include "status/status.h"
#include "tape/recorded_tape.h"
#include "tape/run_json.h"
#include "tape/saved_tape.h"

namespace clrsampler {
namespace {

// One line that is drawn over on a terminal. Nothing is drawn where standard error goes to a file.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : live_(!quiet && isatty(STDERR_FILENO) != 0) {}
  void Show(const RecordProgress& progress) {
    if (!live_) return;
    const std::string named =
        progress.handled == 0 ? ""
                              : absl::StrFormat(", %.0f %% fully named", 100.0 * static_cast<double>(progress.named) /
                                                                             static_cast<double>(progress.handled));
    std::fprintf(stderr, "\r%.0f s, %llu samples%s%s   ", progress.seconds,
                 static_cast<unsigned long long>(progress.samples), named.c_str(),
                 progress.lost > 0 ? absl::StrCat(", ", progress.lost, " lost").c_str() : "");
    shown_ = true;
  }
  void Clear() {
    if (std::exchange(shown_, false)) std::fputs("\r\033[K", stderr);
  }

 private:
  bool live_;
  bool shown_ = false;
};

void SayStart(const RecordConfig& config, const RecordOptions& options) {
  if (config.quiet) return;
  std::string what = "the whole host";
  if (!options.pids.empty())
    what = absl::StrCat(options.pids.size() == 1 ? "process " : "processes ", absl::StrJoin(options.pids, ", "));
  if (!options.command.empty()) what = options.command[0];
  const std::string begun =
      options.view == RecordView::kAllocations  ? absl::StrCat("counting the allocations of ", what)
      : options.view == RecordView::kExceptions ? absl::StrCat("counting the exceptions of ", what)
      : options.view == RecordView::kOffCpu     ? absl::StrCat("following the waits of ", what)
      : options.view == RecordView::kJit        ? absl::StrCat("following the compilations of ", what)
                                                : absl::StrCat("sampling ", what, " at ", options.frequency_hz, " Hz");
  std::fprintf(stderr, "%s; %s\n", begun.c_str(),
               options.duration_ns.has_value() ? absl::StrCat("for ", *config.duration).c_str() : "Ctrl-C ends");
}

// These views count what events of the runtime report. They name no threads, and their compilations have no time.
absl::Status CheckFilter(const RecordConfig& config, const RecordOptions& options, const ProfileFilter& filter) {
  if (config.event != "cpu" && config.view != "cpu") {
    return BadValue(absl::StrCat("--event ", config.event, " is no CPU time, and --view chooses among these"),
                    "leave --view out");
  }
  if (options.view == RecordView::kExceptions && config.view != "cpu") {
    return BadValue("--event exception counts exceptions, and --view chooses among CPU times", "leave --view out");
  }
  if ((options.view == RecordView::kJit || options.view == RecordView::kSuspendDelay) &&
      (filter.thread || filter.from_ns || filter.to_ns)) {
    const absl::string_view view = options.view == RecordView::kJit ? "jit" : "suspend-delay";
    return BadValue(absl::StrCat("a recording of --view ", view, " cannot be filtered by --thread, --from or --to"),
                    "leave these out; --focus and --ignore work with every view");
  }
  if (options.keep_code && options.view != RecordView::kCpu) {
    return BadValue("--code counts samples of CPU time",
                    absl::StrCat("leave ", config.event != "cpu" ? "--event" : "--view", " out"));
  }
  if (options.keep_code && !filter.empty()) {
    return CodeIsOfTheWhole();
  }
  if (filter.from_ns && options.duration_ns && *filter.from_ns >= *options.duration_ns) {
    const std::string duration = absl::FormatDuration(absl::Nanoseconds(*options.duration_ns));
    return BadValue(absl::StrCat("the recording is over before --from ", *config.filter.from),
                    config.replay.empty() ? absl::StrCat("give a --duration that is longer than that; it is ", duration)
                                          : absl::StrCat("the stream is of ", duration, ": give an earlier time"));
  }
  return absl::OkStatus();
}

// Some formats imply --code. Theirs is that of one process.
absl::Status KeepCodeFor(const std::vector<ProfileOutput>& outputs, RecordOptions& options) {
  for (const ProfileOutput& output : outputs) {
    if (!output.writer->needs_code) continue;
    if (options.pids.size() != 1 && options.command.empty()) {
      return BadValue(absl::StrCat(output.name(), ": a .", output.writer->format, " is of one process"),
                      "name it with --pid PID");
    }
    options.keep_code = options.lines.wanted = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadTape(const std::string& path) {
  constexpr char kHint[] = "it takes what this version's record --save-stream wrote";
  absl::StatusOr<UniqueFd> file = OpenForReading(path);
  if (!file.ok()) return WithHint(file.status(), kHint);
  const absl::StatusOr<std::string> packed = ReadWholeFile(file->get(), kMaxTapeBytes);
  if (!packed.ok()) return WithHint(Annotate(packed.status(), path), kHint);
  absl::StatusOr<std::string> records = UnpackTape(*packed);
  if (!records.ok()) return WithHint(Annotate(records.status(), path), kHint);
  return records;
}

absl::StatusOr<std::unique_ptr<RecordedTape>> OpenTape(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(std::string records, ReadTape(paths.front()));
  auto tape = std::make_unique<RecordedTape>(std::move(records));
  for (size_t i = 1; i < paths.size(); ++i) {
    ASSIGN_OR_RETURN(std::string files, ReadTape(paths[i]));
    tape->AddFiles(std::move(files));
  }
  return tape;
}

absl::Status CheckSaved(const RecordConfig& config) {
  if (!config.perf_maps.enable && config.symbol_servers.empty() && config.cri_socket.empty()) return absl::OkStatus();
  return BadValue("--save-stream can't be combined with --enable-perf-map, --symbol-server or --cri-socket",
                  "a stream holds what is read here, not what others are asked to write or send");
}

void SayReplayed(const RecordConfig& config, const RecordedTape& tape) {
  if (config.quiet) return;
  if (!tape.whole()) std::fputs("the stream ends before the recording did: this is what it has\n", stderr);
  if (tape.missing() > 0) {
    std::fprintf(stderr, "%llu questions of this version are not in the stream\n",
                 static_cast<unsigned long long>(tape.missing()));
  }
}

// A recording and a replay share the options of the result.
void DeclareResultOptions(CLI::App& app, RecordConfig& config) {
  app.add_option("--output,-o", config.outputs,
                 "file for the result, in the format of its extension; %p, %c and %t in the name are process id,\n"
                 "its name and the time; may be given several times; without it standard output")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--format", config.format, "format where no extension says it; without it folded")
      ->check(CLI::IsMember(FormatNames()))
      ->type_name("FORMAT");
  DeclareFilterOptions(app, config.filter);
  DeclareBuildToolOptions(app, config.build_tool);
  app.add_flag("--annotate-source", config.annotate_source,
               "in folded text, behind each name where it came from: [memory], [r2r-image], [elf], ...");
  app.add_option("--stats", config.stats, "file for the account of the run, as JSON")->type_name("FILE");
  app.add_flag("--addresses", config.addresses,
               "in the summary, functions of the runtime without a name by address and not by what they are for");
  app.add_flag("--verbose,-v", config.verbose, "say what was found about kernel, processes and files");
  app.add_flag("--quiet,-q", config.quiet, "no progress and no summary");
}

// The files of a run's results. All are opened before the run begins.
struct Results {
  std::vector<ProfileOutput> outputs;
  std::optional<OutputFile> stats;
  std::optional<OutputFile> saved_stacks;
  std::unique_ptr<SavedTape> saved_tape;
};

// Completes the options with what the results need.
absl::StatusOr<Results> OpenResults(const RecordConfig& config, const ProfileFilter& filter, RecordOptions& options) {
  Results results;
  RETURN_IF_ERROR(CheckFilter(config, options, filter));
  const RunOrigin origin = options.origin ? *options.origin : OriginHere(options);
  ASSIGN_OR_RETURN(results.outputs, OpenOutputs(config, options.pids, origin.comm.empty() ? "process" : origin.comm));
  if (config.replay.empty()) RETURN_IF_ERROR(KeepCodeFor(results.outputs, options));
  RETURN_IF_ERROR(CheckFilter(config, options, filter));
  options.keep_samples = options.keep_code || filter.thread || filter.from_ns || filter.to_ns;
  for (const ProfileOutput& output : results.outputs) options.keep_samples |= output.writer->takes_samples;
  std::vector<ResultFile> others;
  ASSIGN_OR_RETURN(results.stats, OpenStats(config));
  if (results.stats) others.push_back({results.stats->name(), results.stats->descriptor()});
  if (!config.save_stream.empty()) {
    RETURN_IF_ERROR(CheckSaved(config));
    ASSIGN_OR_RETURN(results.saved_tape, SavedTape::Create(config.save_stream, RunJson(options, origin)));
    options.tape = results.saved_tape.get();
    others.push_back({config.save_stream, results.saved_tape->descriptor()});
  }
  if (!config.save_stacks.empty()) {
    ASSIGN_OR_RETURN(results.saved_stacks, OutputFile::Open(config.save_stacks));
    others.push_back({results.saved_stacks->name(), results.saved_stacks->descriptor()});
  }
  RETURN_IF_ERROR(CheckDistinct(results.outputs, std::move(others)));
  return results;
}

absl::Status EnterSandbox(const Recorder& recorder, const RecordOptions& options,
                          const std::vector<ProfileOutput>& outputs) {
  AgentNeeds needs;
  needs.command = static_cast<pid_t>(recorder.command_pid());
  // Each image gets a file. The images are known at the end.
  needs.late_outputs = std::any_of(outputs.begin(), outputs.end(), [](const ProfileOutput& one) { return !one.file; });
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, EnterAgentSandbox(options, needs));
  if (options.verbose) {
    for (const std::string& sentence : missing) options.verbose(absl::StrCat("sandbox: ", sentence));
  }
  return absl::OkStatus();
}

absl::Status WriteWhole(absl::string_view text, OutputFile& file) {
  RETURN_IF_ERROR(file.Write(text));
  return file.Finish();
}

absl::Status WriteOthers(const Recorder& recorder, const std::string& stats_text, Results& results) {
  if (results.saved_stacks) {
    RETURN_IF_ERROR(WriteWhole(recorder.kept_stacks().Serialize(), *results.saved_stacks));
  }
  return results.stats ? WriteWhole(stats_text, *results.stats) : absl::OkStatus();
}

// `model`: nullptr where the profile could not be made.
void SaySummary(const RecordConfig& config, const Recorder& recorder, const RecordOptions& options,
                const ProfileModel* model, std::string what_next) {
  constexpr size_t kRows = 5;
  const Account& account = recorder.account();
  HottestMethods hottest;
  if (model != nullptr) {
    MethodWeights weights(config.addresses ? NamelessLeaves::kByAddress : NamelessLeaves::kByRole);
    weights.Add(*model);
    hottest = {weights.Sorted(), weights.total(), weights.nameless_runtime(), "", std::move(what_next)};
  }
  if (options.view == RecordView::kAllocations) {
    hottest.instead = AllocationSummaryText(SummarizeAllocations(recorder.frames(), recorder.stacks()), account, kRows);
  }
  if (HasWaits(options.view)) {
    hottest.instead = WaitSummaryText(SummarizeWaits(recorder.frames(), recorder.stacks()), account, 2 * kRows);
  }
  if (options.view == RecordView::kExceptions) {
    hottest.instead = EventSummaryText(ProfileView::kExceptions, recorder.frames(), recorder.stacks(), account, kRows);
  }
  std::fputs(SummaryText(account, hottest).c_str(), stderr);
}

// The words of earlier versions are accepted, too.
std::string CurrentWordOfUnwind(std::string& word) {
  if (word == "replay") word = "tables";
  if (word == "chain") word = "frame-pointers";
  return {};
}

}  // namespace

void DeclareReplayOptions(CLI::App& app, RecordConfig& config) {
  app.add_option("file", config.replay, "a stream of record --save-stream; more files may hold what it read of images")
      ->required()
      ->type_name("FILE");
  DeclareResultOptions(app, config);
}

void DeclareRecordOptions(CLI::App& app, RecordConfig& config) {
  app.add_option("--pid,-p", config.pids, "processes to sample, separated by commas; without it the whole host")
      ->allow_extra_args(false)
      ->type_name("PID[,PID]");
  DeclareDuration(app, config.duration);
  app.add_option("--frequency,-F", config.frequency_hz, "samples a second and CPU")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str()
      ->type_name("HZ");
  DeclareResultOptions(app, config);
  DeclareNames(app, config.names,
               "short: Namespace.Type.Method; full: with module, parameters and tier; raw: the runtime's text");
  DeclareLines(app, config.lines);
  DeclareCode(app, config.keep_code);
  DeclareEmbedSource(app, config.lines);
  app.add_option(
         "--event", config.event,
         "cpu: what runs. alloc: where .NET programs allocate memory, in bytes, with the types of the objects.\n"
         "exception: where exceptions are thrown, with their types. contention: where threads wait for locks, in\n"
         "nanoseconds; docs/events.md. off-cpu: where threads wait and for what, in microseconds. wall: the same with\n"
         "what they run; docs/waits.md")
      ->check(CLI::IsMember({"cpu", "alloc", "exception", "contention", "off-cpu", "wall"}))
      ->capture_default_str()
      ->type_name("EVENT");
  app.add_option("--source", config.source,
                 "where events come from: probe, in runtimes, as root; eventpipe, the runtime's own event stream, as\n"
                 "its user and without BPF; contention is only there; docs/events.md")
      ->check(CLI::IsMember({"probe", "eventpipe"}))
      ->capture_default_str()
      ->type_name("SOURCE");
  DeclareEventBuffer(app, config.event_buffer_megabytes);
  app.add_option("--min-wait", config.min_wait,
                 "with --event off-cpu and wall: shorter waits are added up and have no stack")
      ->capture_default_str()
      ->type_name("TIME");
  app.add_flag("--wakers", config.wakers,
               "with --event off-cpu and wall: behind each wait the stack of the thread that ended it");
  app.add_option("--view", config.view,
                 "cpu: all samples. pause: what ran while .NET threads stood still for a collection and the like.\n"
                 "suspend-delay: what kept them from stopping, counted in microseconds; docs/pauses.md.\n"
                 "jit: what methods were compiled for, counted in microseconds; docs/jit.md")
      ->check(CLI::IsMember({"cpu", "pause", "suspend-delay", "jit"}))
      ->capture_default_str()
      ->type_name("VIEW");
  app.add_flag("--mark-suspension", config.mark_suspension,
               "an outermost frame on stacks that were taken while .NET threads stood still or were asked to");
  app.add_flag("--no-hooks", config.no_hooks,
               "plant no probes in .NET runtimes: no frames like [gc gen1 blocking] and\n"
               "[jit Shop.Order.Total QuickJitted]");
  DeclareHookBudget(app, config.hook_budget);
  DeclareTryUnknownRuntime(app, config.try_unknown_runtime);
  DeclareRingBytes(app, config.ring_bytes);
  app.add_option("--unwind", config.unwind,
                 "tables: every frame, by the code's own unwind data; frame-pointers: these alone, which skip callers")
      ->transform(CLI::Validator(CurrentWordOfUnwind, ""))
      ->check(CLI::IsMember({"tables", "frame-pointers"}))
      ->capture_default_str()
      ->type_name("WAY");
  app.add_flag("--async-stacks", config.async_stacks,
               "above a resumed async method stand the methods that await it, in the place of the thread pool's\n"
               "frames; .NET 8 to 11 on x64, 9 to 11 on arm64; docs/async.md");
  app.add_option("--max-frames", config.max_frames, "most frames of a stack; a deeper one says so at its root")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--gap-words", config.gap_words, "most stack words kept between two frames; docs/unwinding.md")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--stack-words", config.stack_words, "most stack words kept of a stack; docs/unwinding.md")
      ->check(CLI::Range(64, 8192))
      ->capture_default_str()
      ->type_name("N");
  app.add_option(
         "--symbol-server", config.symbol_servers,
         "where symbols that are not here are asked for: debuginfod or SSQP, or the word microsoft or nuget; may "
         "be given several times")
      ->allow_extra_args(false)
      ->type_name("URL");
  app.add_option("--symbol-cache", config.symbol_cache,
                 "folder for files from symbol servers; without it /var/cache/clrsampler/symbols for root")
      ->type_name("DIR");
  app.add_option("--symbol-cache-size", config.symbol_cache_size,
                 "the most that they may take; also the largest file taken")
      ->capture_default_str()
      ->type_name("SIZE");
  DeclarePerfMaps(app, config.perf_maps);
  DeclareCriSocket(app, config.cri_socket);
  // For the project's own tests: docs/testing.md.
  app.add_option("--save-stacks", config.save_stacks,
                 "keep samples with what unwinding them needs, doubtful ones first")
      ->type_name("FILE")
      ->group("");
  app.add_option("--save-stream", config.save_stream,
                 "keep all that the kernel sent and all that was read, so that `clrsampler replay` makes the same\n"
                 "profile anywhere; it holds parts of the memory and files of the processes: docs/usage.md")
      ->type_name("FILE");
}

absl::Status RunRecord(const RecordConfig& config) {
  RETURN_IF_ERROR(CheckEventSource(config));
  if (config.source == "eventpipe") return RunEventSource(config);
  std::unique_ptr<RecordedTape> played;
  if (!config.replay.empty()) {
    ASSIGN_OR_RETURN(played, OpenTape(config.replay));
  }
  ASSIGN_OR_RETURN(RecordOptions options, played ? ParseRunJson(played->run()) : ToOptions(config));
  options.tape = played.get();
  if (config.verbose) {
    options.verbose = [](const std::string& line) { std::fprintf(stderr, "%s\n", PrintableText(line).c_str()); };
  }

  ASSIGN_OR_RETURN(const ProfileFilter filter, ToFilter(config.filter));
  ASSIGN_OR_RETURN(Results results, OpenResults(config, filter, options));
  if (ReadsPool(options)) RETURN_IF_ERROR(ShareFileBroker(options));
  ASSIGN_OR_RETURN(std::unique_ptr<Recorder> recorder, Recorder::Create(options));
  std::optional<PoolReadings> pool;
  if (ReadsPool(options)) pool.emplace(options.pids.front(), options.files.get());
  if (played == nullptr) {
    RETURN_IF_ERROR(EnterSandbox(*recorder, options, results.outputs));
    SayStart(config, options);
  }
  ProgressLine line(config.quiet);
  RETURN_IF_ERROR(recorder->Run([&](const RecordProgress& progress) { line.Show(progress); }));
  line.Clear();

  const absl::Status saved_stream = results.saved_tape != nullptr ? results.saved_tape->Finish() : absl::OkStatus();
  if (played) SayReplayed(config, *played);
  const std::string stats_text = AccountJson(*recorder, options, pool ? pool->Numbers() : std::nullopt);
  absl::StatusOr<ProfileModel> model = RecordedModel(*recorder, options, stats_text);
  if (model.ok()) model = ApplyFilter(*std::move(model), filter);
  absl::Status written = model.status();
  if (model.ok()) RETURN_IF_ERROR(GiveUpRightsForCode(*model, results.outputs));
  for (ProfileOutput& output : results.outputs) {
    if (model.ok()) {
      written.Update(WriteProfile(*model, {config.annotate_source, config.quiet}, config.build_tool, output));
    }
  }
  // The account is worth having even if the stacks could not be written.
  RETURN_IF_ERROR(WriteOthers(*recorder, stats_text, results));
  if (!config.quiet) {
    SaySummary(config, *recorder, options, model.ok() ? &*model : nullptr,
               written.ok() ? WhatNext(results.outputs) : "");
  }
  written.Update(saved_stream);
  return written;
}

}  // namespace clrsampler
