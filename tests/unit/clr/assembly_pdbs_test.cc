#include "clr/lines/assembly_pdbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "clr/lines/method_lines.h"
#include "formats/byte_reader.h"
#include "test_paths.h"
#include "unit/formats/pdb/pdb_fixture.h"
#include "unit/symbol_server/fake_symbol_files.h"

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
  std::shared_ptr<AssemblySlot> FindAgain(const std::string& name) {
    dll_ = ReadPdbFixture(name + ".dll");
    const absl::StatusOr<PeImage> image = PeImage::Parse(AsBytes(dll_));
    EXPECT_TRUE(image.ok());
    return pdbs_->Find(process_, *image, keep_alive_, (folder_ / (name + ".dll")).string(), name);
  }
  // The lines of a dll of the test data, which the process sees in the folder, without a symbol server.
  AssemblyLines* Find(const std::string& name, std::vector<std::string> folders = {}) {
    pdbs_ = std::make_unique<AssemblyPdbs>(LineOptions{true, std::move(folders)}, images_, notices_);
    slot_ = FindAgain(name);
    return slot_ == nullptr ? nullptr : slot_->lines();
  }
  // The same with one.
  std::shared_ptr<AssemblySlot> FindOrAsk(const std::string& name) {
    pdbs_ = std::make_unique<AssemblyPdbs>(LineOptions(), images_, notices_, &served_);
    return slot_ = FindAgain(name);
  }

  std::filesystem::path folder_;
  std::string dll_;
  const std::shared_ptr<const void> keep_alive_ = std::make_shared<int>();  // `dll_` stays as it is
  ImageFiles images_;
  Notices notices_;
  Process process_{ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()))};
  FakeSymbolFiles served_;
  std::unique_ptr<AssemblyPdbs> pdbs_;
  std::shared_ptr<AssemblySlot> slot_;
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
}

TEST_F(AssemblyPdbsTest, APdbInAFolderThatIsGiven) {
  Put("symbols/linked.pdb", ReadPdbFixture("linked.pdb"));
  EXPECT_EQ(Find("linked"), nullptr);
  EXPECT_EQ(pdbs_->counters().without, 1u);
  EXPECT_THAT(pdbs_->without(), testing::ElementsAre("linked"));
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

TEST_F(AssemblyPdbsTest, TheFilesThatLinesAreInAreNotedWithTheirPlaceOnTheWeb) {
  Put("linked.pdb", ReadPdbFixture("linked.pdb"));
  ASSERT_NE(Find("linked"), nullptr);
  pdbs_->NoteSources(process_, *slot_, 1);
  const auto& files = pdbs_->source_files().all();
  ASSERT_TRUE(files.contains("/_/lines.cs"));
  EXPECT_EQ(files.at("/_/lines.cs").url, "https://host.example/project/0123abcd/lines.cs");
  EXPECT_EQ(files.at("/_/lines.cs").text, "") << "nobody asked for it";
}

TEST_F(AssemblyPdbsTest, AnAssemblyIsLookedForOnce) {
  Put("linked.pdb", ReadPdbFixture("linked.pdb"));
  const auto lines = Find("linked");
  EXPECT_EQ(FindAgain("linked")->lines(), lines);
  EXPECT_EQ(pdbs_->counters().found, 1u);
}

TEST_F(AssemblyPdbsTest, AProcessThatEndsGivesBackWhatNoOtherOneUses) {
  Put("linked.pdb", ReadPdbFixture("linked.pdb"));
  ASSERT_NE(Find("linked"), nullptr);
  ASSERT_NE(slot_->lines()->At(1, 3), std::nullopt);
  EXPECT_GT(pdbs_->heap_bytes(), 0u);
  const std::weak_ptr<AssemblySlot> watched = std::exchange(slot_, nullptr);
  Process other(ProcessKey{2, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  other.ends = process_.ends;
  std::swap(process_, other);
  ASSERT_EQ(FindAgain("linked"), watched.lock());
  process_.ends->Announce(other.key);
  EXPECT_FALSE(watched.expired()) << "the other process has it too";
  process_.ends->Announce(process_.key);
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(pdbs_->heap_bytes(), 0u);
  EXPECT_NE(FindAgain("linked"), nullptr);
  EXPECT_EQ(pdbs_->counters().found, 2u);
}

TEST_F(AssemblyPdbsTest, AnAssemblyWithoutAPdbCountsOnce) {
  EXPECT_EQ(Find("linked"), nullptr);
  process_.ends->Announce(process_.key);
  EXPECT_EQ(FindAgain("linked"), nullptr);
  EXPECT_EQ(pdbs_->counters().without, 1u);
}

TEST_F(AssemblyPdbsTest, APdbInsideOfAnAssemblyWhoseBytesGo) {
  pdbs_ = std::make_unique<AssemblyPdbs>(LineOptions(), images_, notices_);
  dll_ = ReadPdbFixture("embedded.dll");
  const absl::StatusOr<PeImage> image = PeImage::Parse(AsBytes(dll_));
  slot_ = pdbs_->Find(process_, *image, nullptr, "", "embedded");
  dll_.assign(dll_.size(), '\0');
  ASSERT_NE(slot_, nullptr);
  EXPECT_EQ(slot_->lines()->At(1, 0), (SourcePlace{"/_/lines.cs", 8, 9}));
}

TEST_F(AssemblyPdbsTest, WhatIsNotHereIsAskedForAndComesLater) {
  const std::shared_ptr<AssemblySlot> slot = FindOrAsk("linked");
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(slot->lines(), nullptr);
  EXPECT_EQ(FindAgain("linked"), slot);
  ASSERT_EQ(served_.asked.size(), 1u) << "no second question before something has come";
  EXPECT_EQ(served_.asked[0].file_name, "linked.pdb");
  EXPECT_EQ(served_.asked[0].id, "4bc0b10f04764a029162cb4f7377d4c6ffffffff");
  EXPECT_EQ(served_.asked[0].checksum, "SHA256:0fb1c04b7604025a5162cb4f7377d4c6450952e8e501c5055be6975f8f2418b1");
  EXPECT_EQ(pdbs_->counters().awaited, 1u);
  EXPECT_EQ(pdbs_->counters().without, 0u);

  const uint64_t generation = pdbs_->generation();
  served_.Arrives(TestData("pdb/linked.pdb"));
  EXPECT_GT(pdbs_->generation(), generation);
  ASSERT_NE(slot->lines(), nullptr);
  EXPECT_EQ(slot->lines()->At(1, 3), (SourcePlace{"/_/lines.cs", 9, 9}));
  EXPECT_EQ(served_.asked.size(), 2u);
  EXPECT_EQ(pdbs_->counters().awaited, 0u);
  EXPECT_EQ(pdbs_->counters().fetched, 1u);
  EXPECT_EQ(pdbs_->counters().found, 1u);
}

TEST_F(AssemblyPdbsTest, AMethodThatWasLookedAtBeforeHasLinesThen) {
  const MethodLines method{*IlMap::Make({{0, 0, 0}, {16, 0, 3}}, 32), FindOrAsk("linked"), 1, LineKind::kExact};
  EXPECT_EQ(method.At(20), std::nullopt);
  served_.Arrives(TestData("pdb/linked.pdb"));
  EXPECT_EQ(method.At(20), (SourcePlace{"/_/lines.cs", 9, 9, LineKind::kExact}));
}

TEST_F(AssemblyPdbsTest, APdbThatIsHereIsNotAskedFor) {
  Put("linked.pdb", ReadPdbFixture("linked.pdb"));
  ASSERT_NE(FindOrAsk("linked"), nullptr);
  EXPECT_NE(slot_->lines(), nullptr);
  EXPECT_TRUE(served_.asked.empty());
}

TEST_F(AssemblyPdbsTest, WhatNoServerHasIsNowhere) {
  served_.without_file = SymbolFiles::State::kNone;
  EXPECT_EQ(FindOrAsk("linked"), nullptr);
  EXPECT_EQ(FindAgain("linked"), nullptr);
  EXPECT_EQ(served_.asked.size(), 1u);
  EXPECT_EQ(pdbs_->counters().without, 1u);
  EXPECT_EQ(pdbs_->counters().awaited, 0u);
  EXPECT_THAT(pdbs_->without(), testing::ElementsAre("linked"));
}

TEST_F(AssemblyPdbsTest, TheServersWordCountsForNothing) {
  ASSERT_NE(FindOrAsk("linked"), nullptr);
  served_.Arrives(TestData("pdb/zoo_debug.pdb"));
  EXPECT_EQ(slot_->lines(), nullptr);
  EXPECT_EQ(pdbs_->counters().refused, 1u);
  EXPECT_EQ(pdbs_->counters().without, 1u);
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_THAT(notices_.kept()[0].message, HasSubstr("it belongs to another build"));
  served_.Arrives(TestData("pdb/linked.pdb"));
  EXPECT_EQ(slot_->lines(), nullptr);
  EXPECT_EQ(served_.asked.size(), 2u) << "not a third time";
}

}  // namespace
}  // namespace clrsampler
