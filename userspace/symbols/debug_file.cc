#include "symbols/debug_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/proc/maps_text.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// zlib's crc32 does 1 GB/s here; a file above this is taken by build-id only.
constexpr size_t kMaxCrcBytes = 512 << 20;
constexpr absl::string_view kDebugRoot = "/usr/lib/debug";

// The name comes from the image: it must name a file in a folder, not a way out of it.
bool IsPlainFileName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, '/');
}

bool HasDotComponents(absl::string_view path) {
  return absl::StrContains(path, "/../") || absl::StrContains(path, "/./") || absl::EndsWith(path, "/..") ||
         absl::EndsWith(path, "/.");
}

absl::StatusOr<std::shared_ptr<const ImageFile>> OpenOnHost(const std::string& path) {
  // Without O_NONBLOCK a FIFO of that name would stop the agent.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoError(errno, path);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return ErrnoError(errno, path);
  absl::StatusOr<MappedFile> content = MappedFile::Map(fd.get(), 0, 0, ImageFiles::kMaxImageBytes);
  if (!content.ok()) return Annotate(content.status(), path);
  auto file = std::make_shared<ImageFile>();
  file->path = path;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  file->size = static_cast<uint64_t>(status.st_size);
  file->content = *std::move(content);
  return std::shared_ptr<const ImageFile>(std::move(file));
}

bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool CrcMatches(std::span<const std::byte> bytes, uint32_t expected) {
  if (bytes.size() > kMaxCrcBytes) return false;
  return crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())) == expected;
}

// Below the debug root, relative to it.
std::optional<std::string> BuildIdPath(const ElfImage& image) {
  if (image.build_id().size() < 2) return std::nullopt;
  const std::string text = BuildIdText(image.build_id());
  return absl::StrCat("/.build-id/", text.substr(0, 2), "/", text.substr(2), ".debug");
}

}  // namespace

std::optional<DebugFile> DebugFileFinder::Accept(std::shared_ptr<const ImageFile> file, const ElfImage& image) {
  if (file->bytes().data() == image.bytes().data()) return std::nullopt;  // a link to itself
  absl::StatusOr<ElfImage> debug = ElfImage::Parse(file->bytes());
  if (!debug.ok() || !debug->symtab()) return std::nullopt;
  const bool both_have_ids = !image.build_id().empty() && !debug->build_id().empty();
  const std::optional<DebugLink> link = image.debug_link();
  const bool matches = both_have_ids ? SameBytes(image.build_id(), debug->build_id())
                                     : link.has_value() && CrcMatches(file->bytes(), link->crc);
  if (!matches || file->content.damaged()) {
    ++mismatches_;
    return std::nullopt;
  }
  return DebugFile{std::move(file), *std::move(debug)};
}

std::optional<DebugFile> DebugFileFinder::Find(const Process& process, absl::string_view image_path,
                                               const ElfImage& image) {
  image_path = WithoutDeletedMark(image_path);
  const size_t slash = image_path.rfind('/');
  if (slash == absl::string_view::npos || image_path.front() != '/' || HasDotComponents(image_path))
    return std::nullopt;
  const absl::string_view folder = image_path.substr(0, slash);
  const absl::string_view file_name = image_path.substr(slash + 1);
  const std::optional<std::string> by_id = BuildIdPath(image);
  const std::optional<DebugLink> link = image.debug_link();

  std::vector<std::string> in_target;
  std::vector<std::string> on_host;
  if (by_id) {
    in_target.push_back(absl::StrCat(kDebugRoot, *by_id));
    on_host.push_back(absl::StrCat(host_debug_root_, *by_id));
  }
  std::vector<std::string> names;
  if (link && IsPlainFileName(link->file_name)) names.emplace_back(link->file_name);
  for (const absl::string_view suffix : {".dbg", ".debug"}) {
    std::string name = absl::StrCat(file_name, suffix);
    if (names.empty() || names.front() != name) names.push_back(std::move(name));
  }
  for (const std::string& name : names) {
    in_target.push_back(absl::StrCat(folder, "/", name));
    in_target.push_back(absl::StrCat(folder, "/.debug/", name));
    in_target.push_back(absl::StrCat(kDebugRoot, folder, "/", name));
    on_host.push_back(absl::StrCat(host_debug_root_, folder, "/", name));
  }
  for (const std::string& path : in_target) {
    const absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_.GetByPath(process, path);
    if (!file.ok()) continue;
    if (std::optional<DebugFile> debug = Accept(*file, image)) return debug;
  }
  for (const std::string& path : on_host) {
    const absl::StatusOr<std::shared_ptr<const ImageFile>> file = OpenOnHost(path);
    if (!file.ok()) continue;
    if (std::optional<DebugFile> debug = Accept(*file, image)) return debug;
  }
  return std::nullopt;
}

}  // namespace clrsampler
