// The options about perf maps in targets, of the commands that may switch them on.
#ifndef CLRSAMPLER_CLI_PERF_MAP_OPTIONS_H_
#define CLRSAMPLER_CLI_PERF_MAP_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "clr/perf_map/perf_map_lease.h"

namespace clrsampler {

struct PerfMapConfig {
  bool enable = false;
  std::optional<std::string> cap;
  std::string time = "1h";
  std::optional<std::string> lease_directory;
};

void DeclarePerfMaps(CLI::App& app, PerfMapConfig& config);
absl::StatusOr<PerfMapLeaseOptions> ParsePerfMaps(const PerfMapConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_PERF_MAP_OPTIONS_H_
