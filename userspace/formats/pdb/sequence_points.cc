#include "formats/pdb/sequence_points.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/pe/blob_cursor.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int64_t kHiddenLine = 0xFEEFEE;  // in the format's own notation; no line may have this number
constexpr int64_t kColumnLimit = 0x10000;

absl::Status Damaged(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the sequence points of a method are damaged: ", why));
}

class PointDecoder {
 public:
  PointDecoder(std::span<const std::byte> blob, uint32_t document_count)
      : cursor_(blob), document_count_(document_count) {}

  absl::Status Decode(uint32_t document) {
    cursor_.Number();  // the row of the local variables' signature
    RETURN_IF_ERROR(SetDocument(document != 0 ? document : cursor_.Number()));
    while (cursor_.remaining() > 0) RETURN_IF_ERROR(Record());
    return absl::OkStatus();
  }

  std::vector<SequencePoint> TakePoints() { return std::move(points_); }

 private:
  absl::Status SetDocument(uint32_t document) {
    if (cursor_.failed()) return Damaged("they end too early");
    if (document == 0 || document > document_count_) return Damaged("there is no such document");
    document_ = document;
    return absl::OkStatus();
  }

  absl::Status Record() {
    const uint32_t distance = cursor_.Number();
    if (distance == 0 && !points_.empty()) return SetDocument(cursor_.Number());
    if (points_.size() == kMaxSequencePoints) return Damaged("there are too many");
    if (distance >= kSequencePointLimit - il_offset_) return Damaged("an offset is too large");
    il_offset_ += distance;
    const int64_t lines = cursor_.Number();
    const int64_t columns = lines == 0 ? int64_t{cursor_.Number()} : cursor_.SignedNumber();
    SequencePoint point{.il_offset = il_offset_, .document = document_};
    if (lines != 0 || columns != 0) RETURN_IF_ERROR(Place(lines, columns, point));
    if (cursor_.failed()) return Damaged("they end too early");
    points_.push_back(point);
    return absl::OkStatus();
  }

  // The place of a point that is not hidden. It is relative to the point before that is not hidden either, or absolute
  // where there is none.
  absl::Status Place(int64_t lines, int64_t columns, SequencePoint& point) {
    line_ = placed_ ? line_ + cursor_.SignedNumber() : cursor_.Number();
    column_ = placed_ ? column_ + cursor_.SignedNumber() : cursor_.Number();
    placed_ = true;
    const int64_t end_line = line_ + lines, end_column = column_ + columns;
    if (line_ < 0 || end_line >= kSequencePointLimit) return Damaged("a line is out of range");
    if (line_ == kHiddenLine || end_line == kHiddenLine) return Damaged("a line has the number of hidden code");
    if (column_ < 0 || column_ >= kColumnLimit || end_column < 0 || end_column >= kColumnLimit) {
      return Damaged("a column is out of range");
    }
    if (line_ == 0) return absl::OkStatus();
    point.line = static_cast<uint32_t>(line_);
    point.column = static_cast<uint16_t>(column_);
    point.end_line = static_cast<uint32_t>(end_line);
    point.end_column = static_cast<uint16_t>(end_column);
    return absl::OkStatus();
  }

  BlobCursor cursor_;
  const uint32_t document_count_;
  std::vector<SequencePoint> points_;
  uint32_t document_ = 0;
  uint32_t il_offset_ = 0;
  bool placed_ = false;  // line_ and column_ are those of a point
  int64_t line_ = 0, column_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<SequencePoint>> DecodeSequencePoints(std::span<const std::byte> blob, uint32_t document,
                                                                uint32_t document_count) {
  PointDecoder decoder(blob, document_count);
  RETURN_IF_ERROR(decoder.Decode(document));
  return decoder.TakePoints();
}

}  // namespace clrsampler
