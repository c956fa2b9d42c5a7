#include "clr/lines/assembly_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/pdb/line_at.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxDocuments = 16 * 1024;

absl::StatusOr<PortablePdb> OpenOf(std::span<const std::byte> bytes, const PdbId& id) {
  absl::StatusOr<PortablePdb> pdb = PortablePdb::Open(bytes);
  RETURN_IF_ERROR(pdb.status());
  if (pdb->id() != id) {
    return absl::FailedPreconditionError(
        absl::StrCat("it belongs to another build: ", PdbIdText(pdb->id()), " instead of ", PdbIdText(id)));
  }
  return pdb;
}

}  // namespace

absl::StatusOr<std::shared_ptr<AssemblyLines>> AssemblyLines::OfFile(std::shared_ptr<const ImageFile> file,
                                                                     const PdbId& id) {
  absl::StatusOr<PortablePdb> pdb = OpenOf(file->bytes(), id);
  RETURN_IF_ERROR(pdb.status());
  auto lines = std::shared_ptr<AssemblyLines>(new AssemblyLines(*pdb));
  lines->file_ = std::move(file);
  return lines;
}

absl::StatusOr<std::shared_ptr<AssemblyLines>> AssemblyLines::OfBytes(std::vector<std::byte> bytes, const PdbId& id) {
  absl::StatusOr<PortablePdb> pdb = OpenOf(bytes, id);
  RETURN_IF_ERROR(pdb.status());
  auto lines = std::shared_ptr<AssemblyLines>(new AssemblyLines(*pdb));
  lines->bytes_ = std::move(bytes);  // which stay where they are
  return lines;
}

std::optional<SourcePlace> AssemblyLines::At(uint32_t method_rid, uint32_t il_offset) {
  const std::optional<SequencePoint> point = LineAt(PointsOf(method_rid), il_offset);
  return point ? PlaceOf(*point) : std::nullopt;
}

std::optional<SourcePlace> AssemblyLines::BeginOf(uint32_t method_rid) {
  const std::vector<SequencePoint>& points = PointsOf(method_rid);
  // A state machine begins with code of the compiler's own.
  const auto first = std::find_if(points.begin(), points.end(), [](const SequencePoint& p) { return !p.hidden(); });
  return first != points.end() ? PlaceOf(*first) : std::nullopt;
}

std::optional<SourcePlace> AssemblyLines::PlaceOf(const SequencePoint& point) {
  SourcePlace place{NameOf(point.document), point.line, point.column};
  if (place.file.empty() || damaged()) return std::nullopt;
  return place;
}

const std::vector<SequencePoint>& AssemblyLines::PointsOf(uint32_t method_rid) {
  if (const auto known = points_.find(method_rid); known != points_.end()) return known->second;
  absl::StatusOr<std::vector<SequencePoint>> decoded = pdb_.Points(method_rid);
  std::vector<SequencePoint> points = decoded.ok() ? *std::move(decoded) : std::vector<SequencePoint>();
  // A method without any counts too.
  if (point_count_ + points.size() >= kMaxPoints) {
    points_.clear();
    point_count_ = 0;
  }
  point_count_ += points.size() + 1;
  return points_[method_rid] = std::move(points);
}

const std::string& AssemblyLines::NameOf(uint32_t document) {
  if (documents_.size() >= kMaxDocuments) documents_.clear();
  const auto [known, is_new] = documents_.try_emplace(document);
  if (is_new) {
    if (absl::StatusOr<PdbDocument> found = pdb_.Document(document); found.ok()) known->second = std::move(found->name);
  }
  return known->second;
}

void AssemblyLines::NoteSources(uint32_t method_rid, SourceFiles& files, ReadText read_text) {
  if (noted_.size() >= kMaxDocuments) return;
  for (const SequencePoint& point : PointsOf(method_rid)) {
    if (!noted_.insert(point.document).second) continue;
    const absl::StatusOr<PdbDocument> document = pdb_.Document(point.document);
    if (!document.ok() || document->name.empty() || files.contains(document->name)) continue;
    files.Add(document->name, {UrlOf(document->name), files.wants_text() ? read_text(*document) : ""});
  }
}

std::string AssemblyLines::UrlOf(absl::string_view document) {
  if (!source_link_) {
    const std::optional<absl::string_view> json = pdb_.SourceLink();
    absl::StatusOr<SourceLinkMap> map = json ? SourceLinkMap::Parse(*json) : absl::NotFoundError("");
    source_link_ = map.ok() ? *std::move(map) : SourceLinkMap();
  }
  return source_link_->UrlOf(document).value_or("");
}

size_t AssemblyLines::heap_bytes() const {
  return bytes_.capacity() + point_count_ * sizeof(SequencePoint) + documents_.size() * sizeof(std::string);
}

}  // namespace clrsampler
