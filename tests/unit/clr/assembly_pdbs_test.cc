#include "clr/lines/assembly_pdbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "formats/byte_reader.h"
#include "unit/formats/pdb/pdb_fixture.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;

class AssemblyPdbsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("assembly_pdbs_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "symbols");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Put(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  // The lines of a dll of the test data, which the process sees in the folder.
  std::shared_ptr<AssemblyLines> Find(const std::string& name, std::vector<std::string> folders = {}) {
    dll_ = ReadPdbFixture(name + ".dll");
    const absl::StatusOr<PeImage> image = PeImage::Parse(AsBytes(dll_));
    EXPECT_TRUE(image.ok());
    pdbs_ = std::make_unique<AssemblyPdbs>(std::move(folders), images_, notices_);
    return pdbs_->Find(process_, *image, (folder_ / (name + ".dll")).string(), name);
  }

  std::filesystem::path folder_;
  std::string dll_;
  ImageFiles images_;
  Notices notices_;
  Process process_{ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()))};
  std::unique_ptr<AssemblyPdbs> pdbs_;
};

TEST_F(AssemblyPdbsTest, APdbInsideOfTheAssembly) {
  const auto lines = Find("embedded");
  ASSERT_NE(lines, nullptr);
  EXPECT_EQ(lines->At(1, 0), (SourcePlace{"/_/lines.cs", 8, 9}));
  EXPECT_EQ(lines->At(1, 200), (SourcePlace{"/_/lines.cs", 9, 9})) << "the last line before it";
  EXPECT_EQ(lines->At(0xFFFFFF, 0), std::nullopt);
  EXPECT_EQ(lines->BeginOf(1), (SourcePlace{"/_/lines.cs", 8, 9}));
  EXPECT_EQ(lines->BeginOf(0xFFFFFF), std::nullopt);
  EXPECT_EQ(pdbs_->counters().embedded, 1u);
}

TEST_F(AssemblyPdbsTest, APdbBesideTheAssembly) {
  Put("linked.pdb", ReadPdbFixture("linked.pdb"));
  const auto lines = Find("linked");
  ASSERT_NE(lines, nullptr);
  EXPECT_EQ(lines->At(1, 3), (SourcePlace{"/_/lines.cs", 9, 9}));
  EXPECT_TRUE(lines->SourceLink().has_value());
}

TEST_F(AssemblyPdbsTest, APdbInAFolderThatIsGiven) {
  Put("symbols/linked.pdb", ReadPdbFixture("linked.pdb"));
  EXPECT_EQ(Find("linked"), nullptr);
  EXPECT_EQ(pdbs_->counters().without, 1u);
  EXPECT_TRUE(pdbs_->without().contains("linked"));
  EXPECT_NE(Find("linked", {"/nonexistent", (folder_ / "symbols").string()}), nullptr);
  EXPECT_TRUE(notices_.kept().empty());
}

TEST_F(AssemblyPdbsTest, APdbOfAnotherBuildIsNone) {
  Put("linked.pdb", ReadPdbFixture("zoo_debug.pdb"));
  EXPECT_EQ(Find("linked"), nullptr);
  EXPECT_EQ(pdbs_->counters().refused, 1u);
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_THAT(notices_.kept()[0].message, HasSubstr("linked.pdb gives no lines: it belongs to another build"));
  EXPECT_THAT(notices_.kept()[0].hint, HasSubstr("--pdb-path"));
}

TEST_F(AssemblyPdbsTest, WhatIsNoPdbIsToldAndTheNextPlaceAsked) {
  Put("linked.pdb", "this is no PDB at all");
  Put("symbols/linked.pdb", ReadPdbFixture("linked.pdb"));
  EXPECT_NE(Find("linked", {(folder_ / "symbols").string()}), nullptr);
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_THAT(notices_.kept()[0].message, HasSubstr("gives no lines"));
}

TEST_F(AssemblyPdbsTest, AnAssemblyIsLookedForOnce) {
  Put("linked.pdb", ReadPdbFixture("linked.pdb"));
  const auto lines = Find("linked");
  const absl::StatusOr<PeImage> image = PeImage::Parse(AsBytes(dll_));
  EXPECT_EQ(pdbs_->Find(process_, *image, (folder_ / "linked.dll").string(), "linked"), lines);
  EXPECT_EQ(pdbs_->counters().found, 1u);
}

}  // namespace
}  // namespace clrsampler
