#include "cli/profile_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BuildToolOutputTest : public testing::Test {
 protected:
  BuildToolOutputTest() {
    char name[] = "/tmp/clrsampler_outputs_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~BuildToolOutputTest() override { std::filesystem::remove_all(folder_); }

  static ProfileModel Model() {
    ProfileModelBuilder builder;
    for (const auto& [name, path] :
         {std::pair{"main", "/opt/app"}, {"malloc", "/lib/libc.so"}, {"malloc", "/old/libc.so"}}) {
      ModelFrame frame;
      frame.kind = ModelFrameKind::kNative;
      frame.name = builder.String(name);
      frame.module_path = builder.String(path);
      builder.Add({.thread = builder.Thread({}), .stack = builder.Node(kRootNode, builder.Frame(frame))});
    }
    return *std::move(builder).Build();
  }

  std::set<std::string> Files() const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) files.insert(entry.path().filename());
    return files;
  }

  std::string folder_;
};

TEST_F(BuildToolOutputTest, AFileForEachImage) {
  absl::StatusOr<ProfileOutput> output = OpenProfileOutput(folder_ + "/x.%m.mip", "", {});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_THAT(Files(), ElementsAre()) << "what the images are is not known yet";
  ASSERT_TRUE(WriteProfile(Model(), {.quiet = true}, {}, *output).ok());
  EXPECT_THAT(Files(), ElementsAre("x.app.mip", "x.libc.so.mip"));
}

TEST_F(BuildToolOutputTest, OneOfThem) {
  const BuildToolConfig old{.module = "/old/libc.so"};
  absl::StatusOr<ProfileOutput> output = OpenProfileOutput(folder_ + "/x.order", "", old);
  ASSERT_TRUE(output.ok()) << output.status();
  ASSERT_TRUE(WriteProfile(Model(), {.quiet = true}, old, *output).ok());
  EXPECT_GT(std::filesystem::file_size(folder_ + "/x.order"), 0u);
}

TEST_F(BuildToolOutputTest, ALetterForImagesIsOfFormatsThatHoldOne) {
  const std::pair<std::string, BuildToolConfig> wrong[] = {{"/x.%m.json", {}}, {"/x.%m.mip", {.module = "app"}}};
  for (const auto& [name, config] : wrong) {
    const absl::Status status = OpenProfileOutput(folder_ + name, "", config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(HintOf(status), HasSubstr("%m"));
  }
  EXPECT_FALSE(OpenProfileOutput(folder_ + "/nowhere/x.%m.mip", "", {}).ok()) << "said before the work";
}

TEST_F(BuildToolOutputTest, AnOptionThatMeansNothingIsAnError) {
  std::vector<ProfileOutput> outputs;
  for (const char* name : {"/x.html", "/x.mip"}) {
    absl::StatusOr<ProfileOutput> output = OpenProfileOutput(folder_ + name, "", {});
    ASSERT_TRUE(output.ok()) << output.status();
    outputs.push_back(*std::move(output));
  }
  const std::span<const ProfileOutput> page = std::span(outputs).first(1);
  EXPECT_TRUE(CheckBuildToolConfig(page, {}).ok());
  EXPECT_TRUE(CheckBuildToolConfig(outputs, {.module = "app"}).ok()) << "it means something to one of them";
  EXPECT_EQ(CheckBuildToolConfig(page, {.module = "app"}).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status order = CheckBuildToolConfig(outputs, {.order = FunctionOrder::kFirst});
  EXPECT_EQ(order.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(HintOf(order), HasSubstr("--order"));
}

}  // namespace
}  // namespace clrsampler
