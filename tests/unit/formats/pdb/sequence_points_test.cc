#include "formats/pdb/sequence_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "formats/byte_reader.h"
#include "unit/formats/pdb/pdb_builder.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<SequencePoint>> Decode(const std::string& blob, uint32_t document = 1) {
  return DecodeSequencePoints(AsBytes(blob), document, 3);
}

SequencePoint Hidden(uint32_t il_offset, uint32_t document) { return {.il_offset = il_offset, .document = document}; }

TEST(SequencePointsTest, PlacesAreRelativeToTheLastVisiblePoint) {
  const auto points = Decode(PointsBlob()
                                 .Visible(0, 0, 6, 100, 9)       // 100,9 to 100,15
                                 .Hidden(2)                      // does not move the line
                                 .Visible(3, 2, -4, -90, 70)     // 10,79 to 12,75
                                 .Visible(200, 0, 1, 9000, -79)  // 9010,0 to 9010,1
                                 .Visible(1, 0, 1, -100, 1));
  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_THAT(*points,
              ElementsAre(SequencePoint{0, 1, 100, 9, 100, 15}, Hidden(2, 1), SequencePoint{5, 1, 10, 79, 12, 75},
                          SequencePoint{205, 1, 9010, 0, 9010, 1}, SequencePoint{206, 1, 8910, 1, 8910, 2}));
}

TEST(SequencePointsTest, DocumentsHoldUntilTheNext) {
  const auto points = Decode(PointsBlob()
                                 .InitialDocument(2)
                                 .Hidden(0)
                                 .Document(3)
                                 .Visible(1, 0, 1, 5, 1)
                                 .Visible(1, 0, 1, 1, 0)
                                 .Document(1)
                                 .Document(2)
                                 .Hidden(4),
                             0);
  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_THAT(*points, ElementsAre(Hidden(0, 2), SequencePoint{1, 3, 5, 1, 5, 2}, SequencePoint{2, 3, 6, 1, 6, 2},
                                   Hidden(6, 2)));
}

TEST(SequencePointsTest, TheLargestNumbersAreRead) {
  const auto points = Decode(PointsBlob().Visible(kSequencePointLimit - 1, 1, 0xFFFE, kSequencePointLimit - 2, 1));
  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_THAT(*points, ElementsAre(SequencePoint{kSequencePointLimit - 1, 1, kSequencePointLimit - 2, 1,
                                                 kSequencePointLimit - 1, 0xFFFF}));
}

TEST(SequencePointsTest, AStatementInLineZeroIsHidden) {
  const auto points = Decode(PointsBlob().Visible(0, 0, 3, 0, 7).Visible(4, 0, 1, 2, 0));
  ASSERT_TRUE(points.ok());
  EXPECT_THAT(*points, ElementsAre(Hidden(0, 1), SequencePoint{4, 1, 2, 7, 2, 8}));
}

TEST(SequencePointsTest, ABlobWithoutRecordsHasNoPoints) {
  const auto points = Decode(PointsBlob());
  ASSERT_TRUE(points.ok());
  EXPECT_TRUE(points->empty());
}

struct Damage {
  const char* why;
  std::string blob;
  uint32_t document = 1;
};

TEST(SequencePointsTest, DamageIsAnErrorThatSaysWhat) {
  const Damage damages[] = {
      {"end too early", ""},
      {"end too early", PointsBlob(), 0},
      {"no such document", PointsBlob().InitialDocument(0).Hidden(0), 0},
      {"no such document", PointsBlob().InitialDocument(4).Hidden(0), 0},
      {"no such document", PointsBlob().Hidden(0), 4},
      {"no such document", PointsBlob().Hidden(0).Document(4)},
      {"an offset", PointsBlob().Hidden(kSequencePointLimit - 1).Hidden(1)},
      {"an offset", PointsBlob().Hidden(0x10000000).Hidden(0x10000000)},
      {"a line is", PointsBlob().Visible(0, 0, 1, 5, 1).Visible(1, 0, 1, -6, 0)},
      {"a line is", PointsBlob().Visible(0, 2, 1, kSequencePointLimit - 2, 1)},
      {"a line is", PointsBlob().Visible(0, 0, 1, kSequencePointLimit - 1, 1).Visible(1, 0, 1, 1, 0)},
      {"hidden code", PointsBlob().Visible(0, 0, 1, 0xFEEFEE, 1)},
      {"hidden code", PointsBlob().Visible(0, 1, 1, 0xFEEFED, 1)},
      {"a column", PointsBlob().Visible(0, 0, 1, 5, 0x10000)},
      {"a column", PointsBlob().Visible(0, 0, 0x10000, 5, 0)},
      {"a column", PointsBlob().Visible(0, 1, -3, 5, 2)},
      {"a column", PointsBlob().Visible(0, 0, 1, 5, 1).Visible(1, 0, 1, 0, -2)},
  };
  for (const Damage& damage : damages) {
    const auto points = Decode(damage.blob, damage.document);
    EXPECT_EQ(points.status().code(), absl::StatusCode::kDataLoss) << damage.why;
    EXPECT_THAT(std::string(points.status().message()), HasSubstr(damage.why));
  }
}

TEST(SequencePointsTest, ABlobThatRunsOutInARecordIsDamaged) {
  const std::string blob = PointsBlob().Visible(200, 300, -70, 90000, 300).Document(2).Visible(300, 0, 200, -200, 70);
  int whole = 0;
  for (size_t bytes = 0; bytes <= blob.size(); ++bytes) whole += Decode(blob.substr(0, bytes)).ok();
  // Behind the header, the first point, the document and the second point.
  EXPECT_EQ(whole, 4);
}

TEST(SequencePointsTest, NoMethodHasAMillionPoints) {
  std::string blob = PointsBlob().Hidden(0);
  const std::string next = Compressed(1) + Compressed(0) + Compressed(0);
  while (blob.size() < 3 * kMaxSequencePoints) blob += next;
  ASSERT_TRUE(Decode(blob).ok());
  EXPECT_EQ(Decode(blob)->size(), kMaxSequencePoints);
  EXPECT_EQ(Decode(blob + next).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace clrsampler
