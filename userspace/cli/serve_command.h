// `clrsampler serve`: options, the configuration file with the same keys, and reading it again on SIGHUP.
#ifndef CLRSAMPLER_CLI_SERVE_COMMAND_H_
#define CLRSAMPLER_CLI_SERVE_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/hook_budget_option.h"
#include "cli/perf_map_options.h"
#include "cli/push_options.h"
#include "clr/lines/assembly_pdbs.h"
#include "formats/names/frame_text.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

// As given on the command line or in the file.
struct ServeConfig {
  uint32_t frequency_hz = 19;
  std::string window = "10s";
  std::vector<std::string> cgroups, containers, comms;
  std::vector<uint32_t> uids;
  NameStyle names = NameStyle::kShort;
  bool no_hooks = false;
  bool no_allocations = false;
  bool waits = false;
  bool try_unknown_runtime = false;
  double hook_budget = kDefaultHookBudget;  // percent of a CPU
  PerfMapConfig perf_maps;
  std::string cri_socket;
  LineOptions lines;
  std::optional<std::string> ring_bytes;
  std::string history = "/var/lib/clrsampler/history.db";
  bool no_history = false;
  std::string history_size = "2GiB";
  std::string history_age = "720h";
  std::vector<std::string> listen;  // none: kDefaultListenAddress
  std::string token_file;
  bool allow_anonymous_profiles = false;
  std::string tls_cert, tls_key;
  std::vector<std::string> host_names;
  uint32_t max_processes = 50;
  std::string textfile;
  PushConfig push;
  std::vector<std::string> triggers;
  std::string recordings = "/var/lib/clrsampler/recordings";
  std::string recordings_size = "1GiB";
  double cpu_limit = 25;
  std::string memory_limit = "300MiB";
  bool verbose = false;
  bool quiet = false;
};

// `--config` as well.
void DeclareServeOptions(CLI::App& app, ServeConfig& config);

// `arguments` follow the word serve; the program's exit status.
int ServeMain(const std::vector<std::string>& arguments);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_SERVE_COMMAND_H_
