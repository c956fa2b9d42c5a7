// Options of `clrsampler serve` that say where the profiles of each window are sent.
#ifndef CLRSAMPLER_CLI_PUSH_OPTIONS_H_
#define CLRSAMPLER_CLI_PUSH_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "export/otlp_push.h"
#include "export/pyroscope_push.h"

namespace clrsampler {

struct PushConfig {
  std::string push;
  std::string push_by = "service";
  std::vector<std::string> push_headers;
  std::string otlp;
  std::string otlp_by = "service";
  std::vector<std::string> otlp_headers;
  std::string otlp_ca;
};

void DeclarePush(CLI::App& app, PushConfig& config);

// Errors carry a hint.
absl::StatusOr<PyroscopeOptions> ParsePush(const PushConfig& config);
absl::StatusOr<OtlpOptions> ParseOtlp(const PushConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_PUSH_OPTIONS_H_
