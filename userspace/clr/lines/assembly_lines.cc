#include "clr/lines/assembly_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/pdb/line_at.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxDocuments = 16 * 1024;

// An entry of a table that is half empty, with the allocator's overhead for the bytes that it owns.
constexpr size_t kEntryBytes = 96;

}  // namespace

std::optional<SourcePlace> AssemblyLines::At(uint32_t method_rid, uint32_t il_offset) {
  main_loop_.Check();
  const std::optional<SequencePoint> point = LineAt(PointsOf(method_rid), il_offset);
  return point ? PlaceOf(*point) : std::nullopt;
}

std::optional<SourcePlace> AssemblyLines::BeginOf(uint32_t method_rid) {
  main_loop_.Check();
  const std::vector<SequencePoint>& points = PointsOf(method_rid);
  // A state machine begins with code that the compiler has made.
  const auto first = std::find_if(points.begin(), points.end(), [](const SequencePoint& p) { return !p.hidden(); });
  if (first == points.end()) return std::nullopt;
  const SequencePoint point = *first;
  return PlaceOf(point);
}

std::optional<SourcePlace> AssemblyLines::PlaceOf(const SequencePoint& point) {
  SourcePlace place{NameOf(point.document), point.line, point.column};
  if (place.file.empty() || pdb_->damaged()) return std::nullopt;
  return place;
}

const std::vector<SequencePoint>& AssemblyLines::PointsOf(uint32_t method_rid) {
  if (const auto known = points_.find(method_rid); known != points_.end()) {
    Hold(0);
    return known->second;
  }
  const PortablePdb* const pdb = pdb_->Get();
  absl::StatusOr<std::vector<SequencePoint>> decoded =
      pdb == nullptr ? absl::NotFoundError("") : pdb->Points(method_rid);
  std::vector<SequencePoint> points = decoded.ok() ? *std::move(decoded) : std::vector<SequencePoint>();
  points.shrink_to_fit();
  // No compiler makes such a method.
  if (points.size() > kMaxHeldBytes / sizeof(SequencePoint)) points = std::vector<SequencePoint>();
  Hold(kEntryBytes + points.capacity() * sizeof(SequencePoint));
  return points_[method_rid] = std::move(points);
}

std::string AssemblyLines::NameOf(uint32_t document) {
  if (const auto known = documents_.find(document); known != documents_.end()) return known->second;
  const PortablePdb* const pdb = pdb_->Get();
  absl::StatusOr<PdbDocument> found = pdb == nullptr ? absl::NotFoundError("") : pdb->Document(document);
  std::string name = found.ok() ? std::move(found->name) : "";
  Hold(kEntryBytes + name.capacity());
  return documents_[document] = std::move(name);
}

void AssemblyLines::Hold(size_t bytes) {
  if (held_bytes_ + bytes > kMaxHeldBytes) Free();
  held_bytes_ += bytes;
  Used(held_bytes_);
}

void AssemblyLines::Free() {
  points_ = {};
  documents_ = {};
  noted_ = {};
  source_link_.reset();
  held_bytes_ = 0;
}

void AssemblyLines::NoteSources(uint32_t method_rid, SourceFiles& files, ReadText read_text) {
  main_loop_.Check();
  if (noted_.size() >= kMaxDocuments) return;
  absl::flat_hash_set<uint32_t> fresh;
  for (const SequencePoint& point : PointsOf(method_rid)) {
    if (noted_.insert(point.document).second) fresh.insert(point.document);
  }
  Hold(fresh.size() * kEntryBytes);
  for (const uint32_t row : fresh) {
    const PortablePdb* const pdb = pdb_->Get();
    if (pdb == nullptr) return;
    const absl::StatusOr<PdbDocument> document = pdb->Document(row);
    if (!document.ok() || document->name.empty() || files.contains(document->name)) continue;
    files.Add(document->name, {UrlOf(document->name), files.wants_text() ? read_text(*document) : ""});
  }
}

std::string AssemblyLines::UrlOf(absl::string_view document) {
  if (!source_link_) {
    const PortablePdb* const pdb = pdb_->Get();
    const std::optional<absl::string_view> json = pdb == nullptr ? std::nullopt : pdb->SourceLink();
    absl::StatusOr<SourceLinkMap> map = json ? SourceLinkMap::Parse(*json) : absl::NotFoundError("");
    Hold(json ? 2 * json->size() : 0);
    source_link_ = map.ok() ? *std::move(map) : SourceLinkMap();
  }
  return source_link_->UrlOf(document).value_or("");
}

}  // namespace clrsampler
