// The work of the tools of `clrsampler mcp`.
#ifndef CLRSAMPLER_CLI_MCP_TOOLS_H_
#define CLRSAMPLER_CLI_MCP_TOOLS_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "mcp/mcp_server.h"

namespace clrsampler {

// `arguments` fit the tool's schema. `may_record`: the client may have processes recorded.
absl::StatusOr<McpAnswer> CallMcpTool(const std::string& tool, const nlohmann::json& arguments, bool may_record);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_MCP_TOOLS_H_
