// The options that `clrsampler record` was given, and the same as options of a recorder.
#ifndef CLRSAMPLER_CLI_RECORD_CONFIG_H_
#define CLRSAMPLER_CLI_RECORD_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/hook_budget_option.h"
#include "cli/perf_map_options.h"
#include "cli/profile_options.h"
#include "clr/lines/assembly_pdbs.h"
#include "formats/names/frame_text.h"
#include "pipeline/record_options.h"

namespace clrsampler {

// As given on the command line; one declaration makes parsing, range, default and --help.
struct RecordConfig {
  std::vector<std::string> pids;
  std::optional<std::string> duration;
  uint32_t frequency_hz = 99;
  std::vector<std::string> outputs;  // none: standard output
  std::string format;                // empty: folded
  FilterConfig filter;
  BuildToolConfig build_tool;
  NameStyle names = NameStyle::kShort;
  LineOptions lines;
  bool keep_code = false;
  bool annotate_source = false;
  bool addresses = false;
  std::string event = "cpu";
  std::string source = "probe";
  uint32_t event_buffer_megabytes = 16;
  std::string view = "cpu";
  bool no_hooks = false;
  bool try_unknown_runtime = false;
  std::string min_wait = "1ms";
  bool wakers = false;
  double hook_budget = kDefaultHookBudget;  // percent of a CPU
  bool mark_suspension = false;
  std::optional<std::string> stats;
  std::optional<std::string> ring_bytes;
  std::string unwind = "tables";
  bool async_stacks = false;
  uint32_t max_frames = 512;
  uint32_t gap_words = 1024;
  uint32_t stack_words = 4096;
  std::vector<std::string> symbol_servers;
  std::string symbol_cache;
  std::string symbol_cache_size = "4GiB";
  PerfMapConfig perf_maps;
  std::string cri_socket;
  std::string save_stacks;
  std::string save_stream;
  std::vector<std::string> replay;  // not empty: a saved stream is played instead
  bool verbose = false;
  bool quiet = false;
  std::vector<std::string> command;
};

// Errors name the option and have a hint.
absl::StatusOr<RecordOptions> ToOptions(const RecordConfig& config);

// An error about an option, with a hint.
absl::Status BadValue(absl::string_view what, absl::string_view hint);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_RECORD_CONFIG_H_
