#include "cli/serve_command.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/cri_socket_option.h"
#include "cli/duration_option.h"
#include "cli/exit_status.h"
#include "cli/hook_budget_option.h"
#include "cli/lines_option.h"
#include "cli/names_option.h"
#include "cli/ring_option.h"
#include "cli/size_option.h"
#include "clr/perf_map/lease_repair.h"
#include "clr/perf_map/lease_store.h"
#include "container_runtime/cri_process.h"
#include "export/access.h"
#include "export/listen_address.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "os/secret_file.h"
#include "output/summary.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/stop_events.h"
#include "serve/service.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxTokenFileBytes = size_t{64} << 10;
constexpr size_t kMaxPemBytes = size_t{1} << 20;

// A token of this run: 192 random bits that nobody else knows.
absl::StatusOr<std::string> MakeToken() {
  std::array<char, 24> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return ErrnoError(errno, "random bytes for a token");
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

absl::Status ReadListeners(const ServeConfig& config, ServeOptions& options) {
  if (config.listen == std::vector<std::string>{"none"}) return absl::OkStatus();
  for (const std::string& text : config.listen) {
    ASSIGN_OR_RETURN(ListenAddress listen, ParseListenAddress(text));
    options.listen.push_back(std::move(listen));
  }
  if (options.listen.empty()) options.listen.push_back(*ParseListenAddress(kDefaultListenAddress));
  return absl::OkStatus();
}

absl::Status ReadTls(const ServeConfig& config, ServeOptions& options) {
  if (config.tls_cert.empty() && config.tls_key.empty()) return absl::OkStatus();
  if (config.tls_cert.empty() || config.tls_key.empty()) {
    return WithHint(absl::InvalidArgumentError("--tls-cert and --tls-key go together"),
                    "one names the certificate, the other one its key; both are PEM files");
  }
  const absl::StatusOr<UniqueFd> certificates = OpenForReading(config.tls_cert);
  if (!certificates.ok()) return Annotate(certificates.status(), "--tls-cert");
  absl::StatusOr<std::string> text = ReadWholeFile(certificates->get(), kMaxPemBytes);
  if (!text.ok()) return Annotate(text.status(), "--tls-cert");
  absl::StatusOr<std::string> key = ReadSecretFile(config.tls_key, kMaxPemBytes);
  if (!key.ok()) return Annotate(key.status(), "--tls-key");
  options.tls = TlsIdentity{*std::move(text), *std::move(key)};
  return absl::OkStatus();
}

// The address that it listens on, and who may see what there. `run_token` is that of a run in a terminal.
absl::Status ReadAccess(const ServeConfig& config, const std::string& run_token, ServeOptions& options) {
  RETURN_IF_ERROR(ReadListeners(config, options));
  RETURN_IF_ERROR(ReadTls(config, options));
  options.access.anonymous = config.allow_anonymous_profiles;
  if (!config.token_file.empty()) {
    if (config.allow_anonymous_profiles) {
      return WithHint(absl::InvalidArgumentError("--token-file and --allow-anonymous-profiles exclude each other"),
                      "leave out one of them");
    }
    const absl::StatusOr<std::string> text = ReadSecretFile(config.token_file, kMaxTokenFileBytes);
    if (!text.ok()) return Annotate(text.status(), "--token-file");
    absl::StatusOr<std::vector<std::string>> tokens = ParseTokens(*text);
    if (!tokens.ok()) return Annotate(tokens.status(), absl::StrCat("--token-file ", config.token_file));
    options.access.tokens = *std::move(tokens);
  } else if (!config.allow_anonymous_profiles && !run_token.empty() && !config.quiet) {
    options.access.tokens = {run_token};
    options.show_link = true;
  }
  return absl::OkStatus();
}

absl::Status SetSampling(const ServeConfig& config, ServeOptions& options) {
  options.record.frequency_hz = config.frequency_hz;
  options.record.roles = !config.no_hooks;
  options.record.try_unknown_runtime = config.try_unknown_runtime;
  options.record.probe_cost_share = config.hook_budget / 100;
  options.record.names = config.names;
  options.record.lines = config.lines;
  options.allocations = !config.no_hooks && !config.no_allocations;
  options.waits = config.waits;
  ASSIGN_OR_RETURN(options.record.perf_maps, ParsePerfMaps(config.perf_maps));
  ASSIGN_OR_RETURN(options.record.cri_socket, ParseCriSocket(config.cri_socket));
  if (config.ring_bytes) {
    const auto bytes = ParseRingBytes(*config.ring_bytes);
    if (!bytes.ok()) return bytes.status();
    options.record.ring_bytes = *bytes;
  }
  ASSIGN_OR_RETURN(const uint64_t window, ParseDurationNs("--window", config.window));
  if (window < kSecondNs || window > 60 * kSecondNs) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--window ", config.window, " is not from 1s to 60s")),
                    "10s is a good length");
  }
  options.window_ns = window;
  return absl::OkStatus();
}

// The processes that are recorded, and what they may cost.
absl::Status SetScope(const ServeConfig& config, ServeOptions& options) {
  options.selection = {config.cgroups, config.containers, config.comms, config.uids};
  for (const std::string& path : config.cgroups) {
    if (absl::StartsWith(path, "/")) continue;
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--cgroup ", path, " does not begin with /")),
                    "the paths of processes are in /proc/PID/cgroup: --cgroup /system.slice/shop.service");
  }
  options.max_processes = config.max_processes;
  options.limits.cpus = config.cpu_limit / 100;
  const auto memory = ParseSizeBytes("--memory-limit", config.memory_limit, 64 << 20, uint64_t{1} << 40,
                                     "write it as 300MiB; at least 64MiB");
  if (!memory.ok()) return memory.status();
  options.limits.memory_bytes = *memory;
  return absl::OkStatus();
}

absl::Status SetHistory(const ServeConfig& config, ServeOptions& options) {
  if (!config.no_history) options.history_path = config.history;
  const auto history_bytes = ParseSizeBytes("--history-size", config.history_size, 16 << 20, uint64_t{1} << 44,
                                            "write it as 500MiB or 2GiB; at least 16MiB");
  if (!history_bytes.ok()) return history_bytes.status();
  options.history.max_bytes = *history_bytes;
  ASSIGN_OR_RETURN(const uint64_t age, ParseDurationNs("--history-age", config.history_age));
  if (age < 3600 * kSecondNs) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--history-age ", config.history_age, " is less than 1h")),
                    "write it as 24h or 720h; --no-history keeps nothing");
  }
  options.history.max_age_ns = age;
  return absl::OkStatus();
}

// After SetSampling: a trigger watches what is recorded.
absl::Status SetFlights(const ServeConfig& config, ServeOptions& options) {
  for (const std::string& text : config.triggers) {
    ASSIGN_OR_RETURN(Trigger trigger, ParseTrigger(text));
    const absl::Status unseen =
        absl::InvalidArgumentError(absl::StrCat("--trigger ", text, " watches what is not recorded"));
    if (trigger.kind == TriggerKind::kAllocations && !options.allocations) {
      return WithHint(unseen, "leave out --no-hooks and --no-allocations, or the trigger");
    }
    if (trigger.kind == TriggerKind::kWaits && !options.waits) {
      return WithHint(unseen, "give --waits, or leave out the trigger");
    }
    options.flights.triggers.push_back(std::move(trigger));
  }
  options.flights.directory = config.recordings;
  const auto recordings_bytes = ParseSizeBytes("--recordings-size", config.recordings_size, 1 << 20, uint64_t{1} << 44,
                                               "write it as 500MiB or 2GiB");
  if (!recordings_bytes.ok()) return recordings_bytes.status();
  options.flights.max_bytes = *recordings_bytes;
  return absl::OkStatus();
}

absl::Status SetPush(const ServeConfig& config, ServeOptions& options) {
  ASSIGN_OR_RETURN(options.push, ParsePush(config.push));
  ASSIGN_OR_RETURN(options.otlp, ParseOtlp(config.push));
  return absl::OkStatus();
}

absl::StatusOr<ServeOptions> ToOptions(const ServeConfig& config, const std::string& run_token) {
  ServeOptions options;
  options.version = CLRSAMPLER_VERSION;
  RETURN_IF_ERROR(SetSampling(config, options));
  RETURN_IF_ERROR(SetScope(config, options));
  RETURN_IF_ERROR(SetHistory(config, options));
  RETURN_IF_ERROR(SetFlights(config, options));
  RETURN_IF_ERROR(ReadAccess(config, run_token, options));
  RETURN_IF_ERROR(SetPush(config, options));
  options.host_names = config.host_names;
  options.textfile_directory = config.textfile;
  if (!config.quiet) {
    options.log = [](const std::string& line) {
      static std::mutex mutex;  // lines of several threads stay lines
      const std::lock_guard lock(mutex);
      std::fprintf(stderr, "%s\n", PrintableText(line).c_str());
    };
  } else {
    options.log = [](const std::string&) {};
  }
  if (config.verbose) options.record.verbose = options.log;
  return options;
}

// Reads the command line and the file that it names.
absl::StatusOr<ServeConfig> Parse(CLI::App& app, ServeConfig& config, const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
  try {
    app.parse(reversed);
  } catch (const CLI::ConfigError& error) {  // CLI11's way to report; nothing of ours throws
    // "INI was not able to parse KEY", with ++ behind a section.
    absl::string_view key(error.what());
    if (!absl::ConsumePrefix(&key, "INI was not able to parse ")) return absl::InvalidArgumentError(error.what());
    if (absl::ConsumeSuffix(&key, ".++")) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat("[", key, "]: the configuration file has no sections")),
                      "write the keys alone: frequency = 19");
    }
    return WithHint(absl::InvalidArgumentError(absl::StrCat("'", key, "' is no key of the configuration file")),
                    "its keys are the options without --, as in: frequency = 19; clrsampler serve --help lists them");
  } catch (const CLI::FileError& error) {
    return WithHint(absl::NotFoundError(error.what()), "--config names the configuration file");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help
      app.exit(error);
      return absl::CancelledError("");
    }
    return WithHint(absl::InvalidArgumentError(error.what()), "clrsampler serve --help lists the options");
  }
  return config;
}

absl::StatusOr<ServeOptions> ReadOptions(const std::vector<std::string>& arguments, const std::string& run_token) {
  CLI::App app("samples this host without an end, keeps its history, and answers questions about it",
               "clrsampler serve");
  ServeConfig config;
  DeclareServeOptions(app, config);
  ASSIGN_OR_RETURN(const ServeConfig parsed, Parse(app, config, arguments));
  absl::StatusOr<ServeOptions> options = ToOptions(parsed, run_token);
  if (options.ok()) {
    options->reload_on_hangup =
        app.get_config_ptr()->count() > 0 || !parsed.token_file.empty() || !parsed.tls_cert.empty();
  }
  return options;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// This comes once, before the first thread and the first window. All that follows is done with the rights that are
// left, reloading too.
absl::Status EnterSandboxOf(const ServeOptions& options) {
  AgentNeeds needs;
  needs.network = true;
  if (!options.history_path.empty()) needs.write_folders.push_back(FolderOf(options.history_path));
  if (!options.flights.triggers.empty()) {
    // Its folder is made by us too, as the history's is.
    needs.write_folders.push_back(FolderOf(options.flights.directory));
    needs.write_folders.push_back(options.flights.directory);
  }
  if (!options.textfile_directory.empty()) needs.write_folders.push_back(options.textfile_directory);
  for (const ListenAddress& listen : options.listen) {
    if (listen.is_unix()) needs.write_folders.push_back(FolderOf(listen.path));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, EnterAgentSandbox(options.record, needs));
  for (const std::string& sentence : missing) options.log(absl::StrCat("note: ", sentence));
  return absl::OkStatus();
}

// The guard of perf maps is a process, which can't be started in the sandbox. It stays as long as the service does.
absl::Status SetGuard(bool may_start, std::shared_ptr<LeaseGuard>& guard, ServeOptions& options) {
  PerfMapLeaseOptions& perf_maps = options.record.perf_maps;
  if (!perf_maps.everywhere) return absl::OkStatus();
  if (guard == nullptr && !may_start) {
    return WithHint(absl::FailedPreconditionError("--enable-perf-map can't be switched on in a service that runs"),
                    "restart it");
  }
  if (guard == nullptr) {
    const absl::StatusOr<LeaseStore> folder = LeaseStore::Open(perf_maps.directory, /*create=*/true);
    if (!folder.ok()) return Annotate(folder.status(), "perf maps can't be switched on safely");
    ASSIGN_OR_RETURN(LeaseGuard started, LeaseGuard::Start(perf_maps.guard_program, perf_maps.directory));
    guard = std::make_shared<LeaseGuard>(std::move(started));
  }
  perf_maps.guard = guard;
  return absl::OkStatus();
}

// The process that asks it can't be started in the sandbox.
absl::Status OtherCriSocket() {
  return WithHint(absl::FailedPreconditionError("--cri-socket can't be changed in a service that runs"), "restart it");
}

// An option that takes one value each time that it is given.
CLI::Option* Several(CLI::App& app, const char* name, std::vector<std::string>& values, const char* help) {
  return app.add_option(name, values, help)->allow_extra_args(false);
}

void DeclareHistoryAndAccess(CLI::App& app, ServeConfig& config) {
  app.add_option("--history", config.history, "file of the history")->capture_default_str()->type_name("FILE");
  app.add_flag("--no-history", config.no_history, "keep the last minutes in memory only");
  app.add_option("--history-size", config.history_size, "the most that it may take on disk; the oldest goes first")
      ->capture_default_str()
      ->type_name("SIZE");
  app.add_option("--history-age", config.history_age, "how long it is kept")->capture_default_str()->type_name("TIME");
  Several(app, "--listen", config.listen,
          "where the page, the API and /metrics are: ADDRESS:PORT, unix:/PATH, or none.\n"
          "On TCP all but /metrics, /-/ready and /-/healthy takes a token.\n"
          "In a terminal a link with one is printed; else --token-file has it")
      ->default_str(std::string(kDefaultListenAddress))
      ->type_name("ADDRESS");
  app.add_option("--token-file", config.token_file,
                 "file with a token on each line: 'Authorization: Bearer TOKEN' gets profiles over TCP.\n"
                 "Only its owner and its group may read it; read again on SIGHUP")
      ->type_name("FILE");
  app.add_flag("--allow-anonymous-profiles", config.allow_anonymous_profiles,
               "give profiles to everybody who reaches an address of --listen");
  app.add_option("--tls-cert", config.tls_cert,
                 "PEM file of the certificate for TCP, with those that it rests on; read again on SIGHUP")
      ->type_name("FILE");
  app.add_option("--tls-key", config.tls_key, "PEM file of its key, which only its owner and its group may read")
      ->type_name("FILE");
  Several(app, "--allow-host", config.host_names, "a name by which browsers may call this server, besides localhost")
      ->type_name("NAME");
  app.add_option("--metrics-max-processes", config.max_processes,
                 "processes with metrics of their own; the rest is 'other'")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--textfile", config.textfile,
                 "folder of node_exporter's textfile collector: metrics are written there too")
      ->type_name("DIR");
  DeclarePush(app, config.push);
}

// SIGHUP is blocked here. Under nohup it does not end the service, and still has it read its files again.
void SetHangup(bool reloads) {
  if (!HangupIsIgnored()) return;
  if (reloads) {
    signal(SIGHUP, SIG_DFL);
    return;
  }
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  sigprocmask(SIG_UNBLOCK, &hangup, nullptr);
}

}  // namespace

void DeclareServeOptions(CLI::App& app, ServeConfig& config) {
  app.set_config("--config", "", "file with these options: frequency = 19; read again on SIGHUP")->type_name("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_option("--frequency,-F", config.frequency_hz, "samples a second and CPU")
      ->check(CLI::Range(1, 999))
      ->capture_default_str()
      ->type_name("HZ");
  app.add_option("--window", config.window, "the grain of the history, from 1s to 60s")
      ->capture_default_str()
      ->type_name("TIME");
  Several(app, "--cgroup", config.cgroups,
          "keep processes in this control group and below; each of these several times")
      ->type_name("PATH");
  Several(app, "--container", config.containers, "keep processes in this container: its name, or its id")
      ->type_name("NAME");
  Several(app, "--comm", config.comms, "keep processes of this name")->type_name("NAME");
  app.add_option("--uid", config.uids, "keep processes of this user")->allow_extra_args(false)->type_name("UID");
  DeclareNames(app, config.names);
  DeclareLines(app, config.lines);
  app.add_flag("--no-hooks", config.no_hooks,
               "plant no probes in .NET runtimes: no pauses, no compilations, no allocations");
  app.add_flag("--no-allocations", config.no_allocations, "plant none where .NET runtimes allocate memory");
  app.add_flag("--waits", config.waits, "follow where threads wait, for what, and who ends it");
  DeclareHookBudget(app, config.hook_budget);
  DeclareTryUnknownRuntime(app, config.try_unknown_runtime);
  DeclarePerfMaps(app, config.perf_maps);
  DeclareCriSocket(app, config.cri_socket);
  DeclareRingBytes(app, config.ring_bytes);
  DeclareHistoryAndAccess(app, config);
  Several(app, "--trigger", config.triggers,
          "keep the minute around such an event at full detail:\n"
          "'pause>100ms', 'suspend-delay>20ms', 'cpu>80% for 10s', 'alloc>500MB/s', 'wait:monitor+lock>50%'")
      ->type_name("EVENT");
  app.add_option("--recordings", config.recordings, "folder for these")->capture_default_str()->type_name("DIR");
  app.add_option("--recordings-size", config.recordings_size, "the most that they may take; the oldest go first")
      ->capture_default_str()
      ->type_name("SIZE");
  app.add_option("--cpu-limit", config.cpu_limit,
                 "percent of one CPU that sampling and naming may take before the rate is lowered")
      ->check(CLI::Range(0.1, 10000.0))
      ->capture_default_str()
      ->type_name("PERCENT");
  app.add_option("--memory-limit", config.memory_limit, "the same of its memory")
      ->capture_default_str()
      ->type_name("SIZE");
  app.add_flag("--verbose,-v", config.verbose, "say what was found about the kernel");
  app.add_flag("--quiet,-q", config.quiet, "say nothing but errors that end it");
  app.footer(
      "Examples:\n"
      "  sudo clrsampler serve                                    then open the link that it prints\n"
      "  sudo clrsampler serve --config /etc/clrsampler/serve.conf\n"
      "  sudo clrsampler serve --trigger 'pause>100ms' --comm dotnet");
}

int ServeMain(const std::vector<std::string>& arguments) {
  // A signal that comes before the loop runs, or between two iterations, does not kill us. The loop reads it.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  // In a terminal the first look needs a link and no configuration. A log that is kept is no place for it.
  const absl::StatusOr<std::string> run_token = isatty(STDERR_FILENO) == 1 ? MakeToken() : "";
  if (!run_token.ok()) return ReportStatus(run_token.status());
  absl::StatusOr<ServeOptions> options = ReadOptions(arguments, *run_token);
  if (absl::IsCancelled(options.status())) return 0;
  if (!options.ok()) return ReportStatus(options.status());
  SetHangup(options->reload_on_hangup);
  std::shared_ptr<LeaseGuard> guard;
  if (const absl::Status set = SetGuard(/*may_start=*/true, guard, *options); !set.ok()) return ReportStatus(set);
  absl::StatusOr<std::shared_ptr<FileBroker>> files = StartFileBroker();  // it stays as well
  if (!files.ok()) return ReportStatus(files.status());
  options->record.files = *files;
  const std::shared_ptr<LineHelper> line_helper = LineHelperFor(options->record.lines);
  options->record.line_helper = line_helper;
  const std::string cri_socket = options->record.cri_socket;
  if (!cri_socket.empty()) options->record.cri_helper = StartCriHelper(cri_socket);
  const std::shared_ptr<CriHelper> cri_helper = options->record.cri_helper;
  if (const absl::Status entered = EnterSandboxOf(*options); !entered.ok()) return ReportStatus(entered);
  std::optional<ServeOptions> before;  // those from before a reload, until the new ones have proved good
  while (true) {
    options->on_ready = [&before] { before.reset(); };
    const absl::StatusOr<ServeEnd> end = Serve(*options);
    if (!end.ok() && before) {
      options->log(absl::StrCat("the configuration stays as it was: ", end.status().message()));
      options = *std::exchange(before, std::nullopt);
      continue;
    }
    if (!end.ok()) return ReportStatus(end.status());
    if (*end == ServeEnd::kStopped) return 0;
    absl::StatusOr<ServeOptions> changed = ReadOptions(arguments, *run_token);
    if (changed.ok()) {
      if (const absl::Status set = SetGuard(/*may_start=*/false, guard, *changed); !set.ok()) changed = set;
    }
    if (changed.ok() && changed->record.cri_socket != cri_socket) changed = OtherCriSocket();
    if (changed.ok()) {
      changed->record.files = *files;
      changed->record.line_helper = line_helper;
      changed->record.cri_helper = cri_helper;
      before = *std::move(options);
      options = std::move(changed);
      options->log("the configuration was read again");
    } else {
      before.reset();
      options->log(absl::StrCat("the configuration stays as it was: ", changed.status().message()));
    }
  }
}

}  // namespace clrsampler
