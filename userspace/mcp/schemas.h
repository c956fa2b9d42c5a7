// The text of docs/schemas about the tools and their answers, as it was when this program was built.
#ifndef CLRSAMPLER_MCP_SCHEMAS_H_
#define CLRSAMPLER_MCP_SCHEMAS_H_

#include "absl/strings/string_view.h"

namespace clrsampler {

absl::string_view McpToolsJson();      // docs/schemas/mcp-tools.json
absl::string_view ReportSchemaJson();  // docs/schemas/report.schema.json

}  // namespace clrsampler

#endif  // CLRSAMPLER_MCP_SCHEMAS_H_
