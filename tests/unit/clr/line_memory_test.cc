#include "clr/lines/line_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "clr/lines/assembly_lines.h"
#include "clr/lines/pdb_bytes.h"
#include "formats/byte_reader.h"
#include "formats/pe/pdb_reference.h"
#include "formats/pe/pe_image.h"
#include "unit/formats/pdb/pdb_fixture.h"

namespace clrsampler {
namespace {

class Held : public LineMemory::Part {
 public:
  explicit Held(LineMemory& memory) : Part(memory) {}
  void Use(size_t bytes) { Used(bytes); }
  int freed = 0;

 private:
  void Free() override { ++freed; }
};

TEST(LineMemoryTest, TheLeastRecentlyUsedGoFirst) {
  LineMemory memory(100);
  Held a(memory), b(memory), c(memory);
  a.Use(40);
  b.Use(40);
  a.Use(40);
  c.Use(40);
  EXPECT_EQ(a.freed, 0);
  EXPECT_EQ(b.freed, 1);
  EXPECT_EQ(b.heap_bytes(), 0u);
  EXPECT_EQ(memory.bytes(), 80u);
  b.Use(100);
  EXPECT_EQ(a.freed + c.freed, 2);
  EXPECT_EQ(memory.bytes(), 100u);
}

TEST(LineMemoryTest, APartIsNotFreedForItsOwnSake) {
  LineMemory memory(100);
  Held a(memory);
  a.Use(1000);
  EXPECT_EQ(a.freed, 0);
  a.Use(10);
  EXPECT_EQ(memory.bytes(), 10u);
}

TEST(LineMemoryTest, APartThatEndsGivesItsRoomBack) {
  LineMemory memory(100);
  { Held(memory).Use(60); }
  EXPECT_EQ(memory.bytes(), 0u);
}

TEST(LineMemoryTest, CopiesThatStayHaveAQuarter) {
  LineMemory memory(100);
  const std::vector<std::byte> bytes(20);
  auto first = memory.Keep(bytes);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(**first, bytes);
  EXPECT_TRUE(absl::IsResourceExhausted(memory.Keep(bytes).status()));
  first->reset();
  EXPECT_EQ(memory.bytes(), 0u);
  EXPECT_TRUE(memory.Keep(bytes).ok());
}

TEST(SourceFilesTest, NamesOfAnyLengthHaveABound) {
  SourceFiles files;
  const std::string url(1 << 20, 'u');
  for (int i = 0; i < 20; ++i) files.Add(std::to_string(i), {url, ""});
  EXPECT_EQ(files.all().size(), 7u) << "the eighth would be beyond 8 MiB with its name";
  files.Add("short", {"https://host.example/short", ""});
  EXPECT_TRUE(files.contains("short"));
}

// The PDB inside of an assembly of the test data.
class EmbeddedPdbTest : public testing::Test {
 protected:
  std::unique_ptr<PdbBytes> Open(LineMemory& memory) {
    const absl::StatusOr<PeImage> image = PeImage::Parse(AsBytes(dll_));
    absl::StatusOr<std::unique_ptr<PdbBytes>> pdb =
        PdbBytes::Embedded(memory, *EmbeddedPdb(*image), nullptr, PdbReferences(*image).front().id);
    EXPECT_TRUE(pdb.ok()) << pdb.status();
    return *std::move(pdb);
  }

  std::string dll_ = ReadPdbFixture("embedded.dll");
  SourceFiles sources_;
};

TEST_F(EmbeddedPdbTest, IsInflatedAgainWhereItHadToGo) {
  LineMemory memory(4096);
  AssemblyLines lines(memory, Open(memory));
  const std::optional<SourcePlace> place = lines.At(1, 0);
  ASSERT_EQ(place, (SourcePlace{"/_/lines.cs", 8, 9}));
  const size_t bytes = memory.bytes();
  Held other(memory);
  other.Use(4096);
  EXPECT_EQ(memory.bytes(), 4096u) << "nothing of the PDB is left";
  EXPECT_EQ(lines.At(1, 0), place);
  other.Use(0);
  EXPECT_EQ(lines.At(1, 0), place);
  EXPECT_EQ(memory.bytes(), bytes);
}

TEST_F(EmbeddedPdbTest, GivesNoLinesWhereTheAssemblyIsDamagedMeanwhile) {
  LineMemory memory(4096);
  AssemblyLines lines(memory, Open(memory));
  ASSERT_NE(lines.At(1, 0), std::nullopt);
  const std::string whole = dll_;
  dll_.assign(dll_.size(), '\0');
  EXPECT_NE(lines.At(1, 0), std::nullopt) << "what is decoded is good";
  Held other(memory);
  other.Use(4096);
  EXPECT_EQ(lines.At(1, 0), std::nullopt);
  EXPECT_EQ(lines.BeginOf(1), std::nullopt);
  dll_.assign(whole);
  lines.NoteSources(1, sources_, [](const PdbDocument&) { return ""; });
  EXPECT_TRUE(sources_.all().empty()) << "it is not inflated a third time";
}

TEST_F(EmbeddedPdbTest, EveryLineIsRightWhereThereIsNoRoomAtAll) {
  LineMemory none(0), enough;
  AssemblyLines cramped(none, Open(none)), roomy(enough, Open(enough));
  for (uint32_t il = 0; il < 20; ++il) {
    EXPECT_EQ(cramped.At(1, il), roomy.At(1, il));
    EXPECT_EQ(cramped.BeginOf(1), roomy.BeginOf(1));
  }
  EXPECT_NE(roomy.BeginOf(1), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
