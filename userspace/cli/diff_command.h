// `clrsampler diff`: two profiles compared, as a table and as folded text with two counts.
#ifndef CLRSAMPLER_CLI_DIFF_COMMAND_H_
#define CLRSAMPLER_CLI_DIFF_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cli/profile_options.h"
#include "profile/model_diff.h"

namespace clrsampler {

struct DiffConfig {
  std::string before, after;
  std::string output;  // empty: the table only
  DiffBasis by = DiffBasis::kShare;
  uint32_t top = 20;
  FilterConfig filter;
};

void DeclareDiffOptions(CLI::App& app, DiffConfig& config);

absl::Status RunDiff(const DiffConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_DIFF_COMMAND_H_
