#include "cli/record_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "output/profile_writer.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class WhatNextTest : public testing::Test {
 protected:
  WhatNextTest() {
    char name[] = "/tmp/clrsampler_next_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~WhatNextTest() override { std::filesystem::remove_all(folder_); }

  // "-" is standard output.
  std::string Of(const std::vector<std::string>& names) const {
    std::vector<ProfileOutput> outputs;
    for (const std::string& name : names) {
      absl::StatusOr<ProfileOutput> output =
          OpenProfileOutput(name == "-" ? name : absl::StrCat(folder_, "/", name), "", {});
      EXPECT_TRUE(output.ok()) << output.status();
      if (output.ok()) outputs.push_back(*std::move(output));
    }
    return WhatNext(outputs);
  }

  std::string folder_;
};

TEST_F(WhatNextTest, EachFormatSaysWhatItsFilesAreFor) {
  for (const WriterRow& row : WriterTable()) {
    const std::string next = Of({absl::StrCat("cpu", row.extensions[0])});
    EXPECT_THAT(next, HasSubstr(absl::StrCat(folder_, "/cpu", row.extensions[0]))) << row.format;
    if (row.for_build_tools) continue;
    EXPECT_THAT(next, Not(HasSubstr("compiler"))) << row.format;
  }
}

TEST_F(WhatNextTest, APictureComesFirst) {
  EXPECT_THAT(Of({"cpu.pb.gz", "cpu.html", "cpu.json"}), HasSubstr("cpu.html in a browser"));
  EXPECT_THAT(Of({"cpu.pb.gz", "cpu.json"}), HasSubstr("go tool pprof"));
}

TEST_F(WhatNextTest, FilesOfSeveralImagesAreMeantOneByOne) {
  EXPECT_THAT(Of({"cpu.%m.order"}), HasSubstr("give each file to your linker"));
}

TEST_F(WhatNextTest, WithoutAFileAPageIsOffered) { EXPECT_THAT(Of({"-"}), HasSubstr("-o cpu.html")); }

}  // namespace
}  // namespace clrsampler
