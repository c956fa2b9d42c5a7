#include "formats/pdb/embedded_pdb.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/byte_reader.h"
#include "unit/formats/pdb/pdb_fixture.h"
#include "unit/formats/pdb/pdb_text.h"
#include "unit/formats/pe/loaded_fixture.h"

namespace clrsampler {
namespace {

TEST(EmbeddedPdbTest, SaysWhatSystemReflectionMetadataSays) {
  const std::string file = ReadPdbFixture("embedded.dll"), memory = LaidOut(file);
  const auto image = PeImage::Parse(AsBytes(file));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(AssemblyText(*image), ExpectedText("embedded.dll"));
  const auto loaded = PeImage::Parse(AsBytes(memory), PeLayout::kLoaded);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(AssemblyText(*loaded), ExpectedText("embedded.dll"));
}

TEST(EmbeddedPdbTest, AnAssemblyWithoutOneOnlySaysWhereItIs) {
  const std::string file = ReadPdbFixture("linked.dll");
  EXPECT_EQ(AssemblyText(*PeImage::Parse(AsBytes(file))), ExpectedText("linked.dll"));
}

class DamagedEmbeddedPdbTest : public testing::Test {
 protected:
  DamagedEmbeddedPdbTest() {
    file_ = ReadPdbFixture("embedded.dll");
    entry_ = std::string(AsText(*EmbeddedPdb(*PeImage::Parse(AsBytes(file_)))));
    bytes_ = *LoadAt<uint32_t>(AsBytes(entry_), 4);
  }
  absl::StatusCode CodeOf(uint32_t claimed, uint64_t max_bytes = kMaxEmbeddedPdbBytes) const {
    std::string entry = entry_;
    std::memcpy(entry.data() + 4, &claimed, sizeof claimed);
    return InflateEmbeddedPdb(AsBytes(entry), max_bytes).status().code();
  }
  std::string file_, entry_;
  uint32_t bytes_ = 0;
};

TEST_F(DamagedEmbeddedPdbTest, ALieAboutTheSizeIsAnError) {
  EXPECT_EQ(CodeOf(bytes_), absl::StatusCode::kOk);
  for (const uint32_t lie : {uint32_t{0}, uint32_t{1}, bytes_ - 1, bytes_ + 1, 2 * bytes_}) {
    EXPECT_EQ(CodeOf(lie), absl::StatusCode::kDataLoss) << lie;
  }
  // Below the bound of bytes, but more than deflate can make of so few.
  EXPECT_EQ(CodeOf(static_cast<uint32_t>(kMaxEmbeddedPdbBytes)), absl::StatusCode::kDataLoss);
}

TEST_F(DamagedEmbeddedPdbTest, NoMoreIsInflatedThanAllowed) {
  EXPECT_EQ(CodeOf(bytes_, bytes_), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(bytes_, bytes_ - 1), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(UINT32_MAX), absl::StatusCode::kResourceExhausted);
}

TEST_F(DamagedEmbeddedPdbTest, CutOffDataIsAnError) {
  for (size_t size = 0; size < entry_.size(); ++size) {
    const std::string cut = entry_.substr(0, size);
    EXPECT_EQ(InflateEmbeddedPdb(AsBytes(cut)).status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

}  // namespace
}  // namespace clrsampler
