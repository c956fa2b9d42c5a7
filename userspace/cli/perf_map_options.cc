#include "cli/perf_map_options.h"

#include <cstdint>

#include "cli/duration_option.h"
#include "cli/size_option.h"
#include "status/status.h"

namespace clrsampler {

void DeclarePerfMaps(CLI::App& app, PerfMapConfig& config) {
  app.add_flag("--enable-perf-map", config.enable,
               "have .NET 8+ processes that write no perf map write one for the time of the run, then remove it;\n"
               "without it nothing is written into any process");
  app.add_option("--perf-map-cap", config.cap,
                 "size at which a perf map of --enable-perf-map is switched off; without it 64MiB")
      ->type_name("SIZE");
  app.add_option("--perf-map-time", config.time, "time after which such a perf map is switched off")
      ->capture_default_str()
      ->type_name("TIME");
  // For tests, and for hosts where /run is not writable.
  app.add_option("--lease-directory", config.lease_directory, "where the record of perf maps that are on is kept")
      ->type_name("DIR")
      ->group("");
}

absl::StatusOr<PerfMapLeaseOptions> ParsePerfMaps(const PerfMapConfig& config) {
  PerfMapLeaseOptions options;
  options.everywhere = config.enable;
  if (config.cap.has_value()) {
    const absl::StatusOr<uint64_t> bytes = ParseSizeBytes("--perf-map-cap", *config.cap, 4 << 10, uint64_t{64} << 30,
                                                          "write it as 512KiB or 64MiB; from 4KiB to 64GiB");
    if (!bytes.ok()) return bytes.status();
    options.cap_bytes = *bytes;
  }
  ASSIGN_OR_RETURN(options.cap_ns, ParseDurationNs("--perf-map-time", config.time));
  if (config.lease_directory.has_value()) options.directory = *config.lease_directory;
  return options;
}

}  // namespace clrsampler
