// `clrsampler report`: what profiles, or a recording of a process, say, within a budget of characters.
#ifndef CLRSAMPLER_CLI_REPORT_COMMAND_H_
#define CLRSAMPLER_CLI_REPORT_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace clrsampler {

struct ReportConfig {
  std::vector<std::string> inputs;
  std::optional<uint32_t> pid;
  std::string duration = "10s";
  uint32_t budget = 4000;  // characters
  bool json = false;
};

void DeclareReportOptions(CLI::App& app, ReportConfig& config);

absl::Status RunReport(const ReportConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_REPORT_COMMAND_H_
