// The server's side of the Model Context Protocol: messages in, messages out. Pure; the transport is the caller's.
//
// https://modelcontextprotocol.io/specification/2025-06-18, with tools only. A message is a line of JSON-RPC 2.0 by a
// stranger: any bytes give an answer or none.
#ifndef CLRSAMPLER_MCP_MCP_SERVER_H_
#define CLRSAMPLER_MCP_MCP_SERVER_H_

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr size_t kMaxMcpMessageBytes = 1 << 20;
// Messages of a batch. An answer can be a thousand times as large as its question.
inline constexpr size_t kMaxMcpBatch = 32;

// The answer of a tool.
struct McpAnswer {
  std::string text;        // for people and for models
  std::string structured;  // a JSON object, as docs/schemas/report.schema.json has it
};

// Calls a tool whose name and arguments fit McpToolsJson: required ones are there, and all have the types and lie
// within the bounds that it says.
using McpCall = std::function<absl::StatusOr<McpAnswer>(const std::string& tool, const nlohmann::json& arguments)>;

class McpServer {
 public:
  McpServer(std::string version, McpCall call);

  // The answer to a message, a line without its end; empty: it needs none. Errors of a tool are answers, too.
  std::string Handle(absl::string_view message);

 private:
  nlohmann::json HandleOne(const nlohmann::json& message);  // null: no answer
  nlohmann::json Initialize(const nlohmann::json& params) const;
  // The result, or an object with "error".
  nlohmann::json CallTool(const nlohmann::json& params);

  const std::string version_;
  const McpCall call_;
  nlohmann::json tools_;  // with their output schemas
};

// Why the arguments don't fit the schema, as a sentence; empty: they do. Knows what schemas of tools are made of here:
// type, required, properties, additionalProperties, items, minimum, maximum, minItems, maxItems, minLength.
std::string FaultOfArguments(const nlohmann::json& schema, const nlohmann::json& arguments);

}  // namespace clrsampler

#endif  // CLRSAMPLER_MCP_MCP_SERVER_H_
