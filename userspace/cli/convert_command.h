// `clrsampler convert` and `clrsampler merge`: profiles in one format or several -> one file in any.
#ifndef CLRSAMPLER_CLI_CONVERT_COMMAND_H_
#define CLRSAMPLER_CLI_CONVERT_COMMAND_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/profile_options.h"

namespace clrsampler {

struct ConvertConfig {
  std::string input;                // of convert
  std::vector<std::string> inputs;  // of merge
  std::string output;
  std::string format;
  FilterConfig filter;
  BuildToolConfig build_tool;
};

void DeclareConvertOptions(CLI::App& app, ConvertConfig& config);
void DeclareMergeOptions(CLI::App& app, ConvertConfig& config);

// Both: a merge of one profile is that profile.
absl::Status RunConvert(const ConvertConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_CONVERT_COMMAND_H_
