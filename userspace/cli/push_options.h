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
  PushBy push_by = PushBy::kService;
  std::vector<std::string> push_headers;
  std::string otlp;
  PushBy otlp_by = PushBy::kService;
  std::vector<std::string> otlp_headers;
  std::string otlp_ca;
};

void DeclarePush(CLI::App& app, PushConfig& config);

// Errors carry a hint.
absl::StatusOr<PyroscopeOptions> ParsePush(const PushConfig& config);
absl::StatusOr<OtlpOptions> ParseOtlp(const PushConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_PUSH_OPTIONS_H_
