#include "mcp/schemas.h"

#include <cstddef>

// The assembler includes the files as they are. CMake says where they are, and that this file depends on them.
__asm__(
    ".pushsection .rodata\n"
    ".global clrsampler_mcp_tools_begin\n"
    ".global clrsampler_mcp_tools_end\n"
    ".global clrsampler_report_schema_begin\n"
    ".global clrsampler_report_schema_end\n"
    "clrsampler_mcp_tools_begin:\n"
    ".incbin \"" CLRSAMPLER_SCHEMAS
    "/mcp-tools.json\"\n"
    "clrsampler_mcp_tools_end:\n"
    "clrsampler_report_schema_begin:\n"
    ".incbin \"" CLRSAMPLER_SCHEMAS
    "/report.schema.json\"\n"
    "clrsampler_report_schema_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char clrsampler_mcp_tools_begin[];
extern const char clrsampler_mcp_tools_end[];
extern const char clrsampler_report_schema_begin[];
extern const char clrsampler_report_schema_end[];
}

namespace clrsampler {

absl::string_view McpToolsJson() {
  return {clrsampler_mcp_tools_begin, static_cast<size_t>(clrsampler_mcp_tools_end - clrsampler_mcp_tools_begin)};
}

absl::string_view ReportSchemaJson() {
  return {clrsampler_report_schema_begin,
          static_cast<size_t>(clrsampler_report_schema_end - clrsampler_report_schema_begin)};
}

}  // namespace clrsampler
