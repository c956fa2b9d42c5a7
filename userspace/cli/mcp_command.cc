#include "cli/mcp_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "absl/strings/string_view.h"
#include "cli/exit_status.h"
#include "cli/mcp_tools.h"
#include "mcp/mcp_server.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Lines of standard input. The beginning of a line that is too long is kept, and it is no JSON.
class InputLines {
 public:
  // False: the input has ended.
  bool Next(std::string& line) {
    line.clear();
    while (true) {
      const size_t end = buffer_.find('\n');
      const size_t taken = end == std::string::npos ? buffer_.size() : end;
      line.append(buffer_, 0,
                  std::min(taken, kMaxMcpMessageBytes + 1 - std::min(line.size(), kMaxMcpMessageBytes + 1)));
      buffer_.erase(0, end == std::string::npos ? taken : end + 1);
      if (end != std::string::npos) return true;
      if (!Fill()) return !line.empty();
    }
  }

 private:
  bool Fill() {
    char bytes[4096];
    ssize_t count = 0;
    do {
      count = read(STDIN_FILENO, bytes, sizeof bytes);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) return false;
    buffer_.assign(bytes, static_cast<size_t>(count));
    return true;
  }

  std::string buffer_;
};

}  // namespace

void DeclareMcpOptions(CLI::App& app, McpConfig& config) {
  app.add_flag("--record", config.may_record,
               "let the client record processes, with the rights of this one; without it tools take files only");
}

absl::Status RunMcp(const McpConfig& config) {
  McpServer server(CLRSAMPLER_VERSION, [&](const std::string& tool, const nlohmann::json& arguments) {
    return CallMcpTool(tool, arguments, config.may_record);
  });
  InputLines lines;
  for (std::string line; lines.Next(line);) {
    const std::string answer = server.Handle(line);
    if (!answer.empty()) RETURN_IF_ERROR(PrintAll(answer + "\n"));
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
