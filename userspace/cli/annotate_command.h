// `clrsampler annotate`: a method with the samples of its lines and instructions.
#ifndef CLRSAMPLER_CLI_ANNOTATE_COMMAND_H_
#define CLRSAMPLER_CLI_ANNOTATE_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace clrsampler {

struct AnnotateConfig {
  std::string method;
  std::string input;  // a profile of record --code
  std::optional<uint32_t> pid;
  std::string duration = "10s";
  bool all = false;
};

void DeclareAnnotateOptions(CLI::App& app, AnnotateConfig& config);

// Gives the rights of the process up before it looks at code.
absl::Status RunAnnotate(const AnnotateConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_ANNOTATE_COMMAND_H_
