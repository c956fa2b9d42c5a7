#include "cli/convert_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "output/profile_writer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConvertCodeTest : public testing::Test {
 protected:
  ConvertCodeTest() {
    char name[] = "/tmp/clrsampler_convert_XXXXXX";
    folder_ = mkdtemp(name);
    ProfileModelBuilder builder;
    const FrameIndex frame = builder.Frame({.kind = ModelFrameKind::kJit, .name = builder.String("Shop.Total")});
    builder.Add({.thread = builder.Thread({.pid = 7, .tid = 7}), .stack = builder.Node(kRootNode, frame)});
    builder.Code({.frame = frame, .pid = 7, .address = 4096, .bytes = "\xc3"});
    std::ofstream file(In("code.json"), std::ios::binary);
    const absl::Status written =
        WriterOfFormat("json")->make({})->Write(*std::move(builder).Build(), [&](absl::string_view bytes) {
          file << bytes;
          return absl::OkStatus();
        });
    EXPECT_TRUE(written.ok()) << written;
  }
  ~ConvertCodeTest() override { std::filesystem::remove_all(folder_); }

  std::string In(const std::string& name) const { return folder_ + "/" + name; }

  // The status, and what was said on standard error.
  static std::pair<absl::Status, std::string> Run(const ConvertConfig& config) {
    testing::internal::CaptureStderr();
    const absl::Status status = RunConvert(config);
    return {status, testing::internal::GetCapturedStderr()};
  }

  std::string folder_;
};

TEST_F(ConvertCodeTest, AJitdumpOfAPartIsRefusedForWhatItIs) {
  ConvertConfig config{.input = In("code.json"), .output = In("x.jitdump")};
  config.filter.focus = "Shop";
  const absl::Status status = Run(config).first;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("samples of whole recordings"));
  EXPECT_THAT(std::string(HintOf(status)), HasSubstr("filters"));
}

TEST_F(ConvertCodeTest, AMergeSaysThatItHasNoCode) {
  ConvertConfig config{.inputs = {In("code.json"), In("code.json")}, .output = In("x.jitdump")};
  const absl::Status status = Run(config).first;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("several were merged"));

  config.output = In("x.json");
  const auto [merged, said] = Run(config);
  EXPECT_TRUE(merged.ok()) << merged;
  EXPECT_THAT(said, HasSubstr("x.json has no machine code"));

  config.output = In("x.folded");  // which has none anyway
  EXPECT_THAT(Run(config).second, IsEmpty());
}

}  // namespace
}  // namespace clrsampler
