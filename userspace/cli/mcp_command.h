// `clrsampler mcp`: a server of the Model Context Protocol on standard input and output.
#ifndef CLRSAMPLER_CLI_MCP_COMMAND_H_
#define CLRSAMPLER_CLI_MCP_COMMAND_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

namespace clrsampler {

struct McpConfig {
  bool may_record = false;
};

void DeclareMcpOptions(CLI::App& app, McpConfig& config);

// Until standard input ends.
absl::Status RunMcp(const McpConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_MCP_COMMAND_H_
