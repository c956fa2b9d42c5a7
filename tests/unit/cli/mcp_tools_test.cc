#include "cli/mcp_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;

// Each tool that reads files, asked for this one.
void ExpectRefused(const std::string& file, const std::string& why) {
  const nlohmann::json one = {{"file", file}}, two = {{"before", file}, {"after", file}}, several = {{"files", {file}}};
  for (const auto& [tool, arguments] : {std::pair("top", &one), std::pair("pauses", &one), std::pair("waits", &one),
                                        std::pair("diff", &two), std::pair("report", &several)}) {
    const absl::Status status = CallMcpTool(tool, *arguments, false).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << tool;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << tool;
    EXPECT_NE(HintOf(status), "") << tool;
  }
}

TEST(McpToolsTest, TheStreamOfTheProtocolIsNoProfile) { ExpectRefused("-", "standard input"); }

TEST(McpToolsTest, OnlyRegularFilesAreOpened) {
  char name[] = "/tmp/clrsampler_mcp_XXXXXX";
  const std::string folder = mkdtemp(name);
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ExpectRefused(pipe, "no regular file");  // nobody writes into it: to open it would take for ever
  ExpectRefused(folder, "no regular file");
  ExpectRefused("/dev/null", "no regular file");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace clrsampler
