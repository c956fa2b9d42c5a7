// Properties of every PDB that is opened, however damaged: its answers are in bounds, in order, and the same each time.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_PROPERTIES_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_PROPERTIES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/pdb/line_at.h"
#include "formats/pdb/portable_pdb.h"
#include "unit/formats/pdb/pdb_text.h"

namespace clrsampler {

// All functions return what is wrong, or an empty text.

inline absl::string_view WrongPoint(const SequencePoint& point, const SequencePoint* before, uint32_t document_count) {
  if (point.document == 0 || point.document > document_count) return "a point is in no document";
  if (point.il_offset >= kSequencePointLimit) return "an offset is too large";
  if (before != nullptr && point.il_offset <= before->il_offset) return "offsets do not ascend";
  if (point.hidden()) {
    return point.column == 0 && point.end_line == 0 && point.end_column == 0 ? "" : "a hidden point has a place";
  }
  if (point.end_line < point.line || point.end_line >= kSequencePointLimit) return "a line is out of range";
  if (point.end_line == point.line && point.end_column <= point.column) return "a statement is empty";
  return "";
}

inline absl::string_view WrongPoints(const std::vector<SequencePoint>& points, uint32_t document_count) {
  if (points.empty()) return "a method has no points, and does not say so";
  const SequencePoint* before = nullptr;
  const SequencePoint* line = nullptr;
  for (const SequencePoint& point : points) {
    const absl::string_view wrong = WrongPoint(point, before, document_count);
    if (!wrong.empty()) return wrong;
    // The line before this point, and at it, found by walking forwards.
    if (point.il_offset > 0) {
      const std::optional<SequencePoint> found = LineAt(points, point.il_offset - 1);
      if (found.has_value() != (line != nullptr) || (found && *found != *line)) return "another line before a point";
    }
    if (!point.hidden()) line = &point;
    const std::optional<SequencePoint> found = LineAt(points, point.il_offset);
    if (found.has_value() != (line != nullptr) || (found && *found != *line)) return "another line at a point";
    before = &point;
  }
  return "";
}

// Looks at the first `most` rows of each kind, so that one PDB stays fast.
inline absl::string_view WrongPdb(const PortablePdb& pdb, uint32_t most) {
  for (uint32_t rid = 0; rid < std::min(pdb.method_count(), most) + 2; ++rid) {
    const std::optional<uint32_t> kickoff = pdb.KickoffOf(rid);
    if (kickoff && (*kickoff == 0 || *kickoff > pdb.method_count())) return "a kickoff is no method";
    const absl::StatusOr<std::vector<SequencePoint>> points = pdb.Points(rid);
    if (points.ok()) {
      if (rid == 0 || rid > pdb.method_count()) return "a method that is none has points";
      const absl::string_view wrong = WrongPoints(*points, pdb.document_count());
      if (!wrong.empty()) return wrong;
    }
    if (MethodText(pdb, rid) != MethodText(pdb, rid)) return "a method has other lines the second time";
  }
  for (uint32_t row = 0; row < std::min(pdb.document_count(), most) + 2; ++row) {
    const absl::StatusOr<PdbDocument> document = pdb.Document(row);
    if (!document.ok()) continue;
    if (row == 0 || row > pdb.document_count()) return "a document that is none has a name";
    if (document->name.size() > PortablePdb::kMaxDocumentNameBytes) return "a name is too long";
    const size_t hash_bytes[] = {0, 20, 32};
    if (document->hash.size() != hash_bytes[static_cast<size_t>(document->hash_algorithm)])
      return "a hash has another size";
    if (DocumentText(pdb, row) != DocumentText(pdb, row)) return "a document has another name the second time";
  }
  if (pdb.SourceLink() != pdb.SourceLink()) return "another source link the second time";
  return "";
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_PDB_PDB_PROPERTIES_H_
