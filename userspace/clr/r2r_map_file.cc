#include "clr/r2r_map_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "formats/jit/r2rmap_parser.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The map of a self-contained composite framework has 33 MB and 200,245 rows (.NET 10.0.12).
constexpr uint64_t kMaxMapBytes = uint64_t{512} << 20;

absl::Status CheckHeader(const R2rMapHeader& header, const PeImage& pe) {
  const std::vector<PerfMapDebugEntry> entries = pe.PerfMapEntries();
  const bool signature_known = std::any_of(entries.begin(), entries.end(), [&](const PerfMapDebugEntry& entry) {
    return entry.signature == header.signature && entry.version == header.version;
  });
  if (!signature_known) return absl::FailedPreconditionError("its signature is not the image's");
  const bool os_fits = pe.os() == PeOs::kLinux     ? header.os == R2rMapOs::kLinux
                       : pe.os() == PeOs::kFreeBsd ? header.os == R2rMapOs::kFreeBsd
                                                   : false;
  if (!os_fits) return absl::FailedPreconditionError("it is for another operating system");
  const R2rMapArchitecture architecture =
      pe.machine() == PeMachine::kArm64 ? R2rMapArchitecture::kArm64 : R2rMapArchitecture::kX64;
  if (header.architecture != architecture) return absl::FailedPreconditionError("it is for another architecture");
  if (header.abi != R2rMapAbi::kDefault) return absl::FailedPreconditionError("it is for another ABI");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<R2rMapFile> R2rMapFile::Check(std::shared_ptr<const ImageFile> file, const R2rImage& image) {
  if (file->bytes().size() > kMaxMapBytes) return absl::ResourceExhaustedError("it is larger than 512 MiB");
  const absl::string_view text = AsText(file->bytes());
  ASSIGN_OR_RETURN(const R2rMapHeader header, ParseR2rMapHeader(text));
  RETURN_IF_ERROR(CheckHeader(header, image.pe()));
  // Each row is of another function.
  ASSIGN_OR_RETURN(const R2rMap map, ParseR2rMap(text, image.function_count()));
  if (map.rows.empty()) return absl::FailedPreconditionError("it has no rows");

  R2rMapFile checked;
  checked.rows_.reserve(map.rows.size());
  for (const R2rMapRow& row : map.rows) {
    if (!image.BeginsAt(row.rva)) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "no function of the image begins at its row %08X: another build has the same signature", row.rva));
    }
    checked.rows_.push_back(
        {row.rva, static_cast<uint32_t>(row.name.data() - text.data()), static_cast<uint32_t>(row.name.size())});
  }
  std::sort(checked.rows_.begin(), checked.rows_.end(), [](const Row& a, const Row& b) { return a.rva < b.rva; });
  checked.file_ = std::move(file);
  if (checked.damaged()) return absl::DataLossError("it was truncated while it was read");
  return checked;
}

std::optional<absl::string_view> R2rMapFile::RowAt(uint32_t rva) const {
  const auto row =
      std::lower_bound(rows_.begin(), rows_.end(), rva, [](const Row& a, uint32_t b) { return a.rva < b; });
  if (row == rows_.end() || row->rva != rva) return std::nullopt;
  return AsText(file_->bytes()).substr(row->offset, row->bytes);
}

}  // namespace clrsampler
