#include "symbols/debug_file.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/proc/maps_text.h"
#include "os/clock.h"
#include "os/tape_answer.h"
#include "process/mounts_identity.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kDebugRoot = "/usr/lib/debug";

// The name comes from the image: it must name a file in a folder, not a way out of it.
bool IsPlainFileName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, '/');
}

bool HasDotComponents(absl::string_view path) {
  return absl::StrContains(path, "/../") || absl::StrContains(path, "/./") || absl::EndsWith(path, "/..") ||
         absl::EndsWith(path, "/.");
}

// A mount of a user's own may show any owner.
bool IsOnFuse(const OpenedFile& file) {
  return Taped(
      file.tape, [&file] { return file.fuse; }, "fuse ", file.status.st_dev, " ", file.status.st_ino);
}

// The path has no symbolic links. A file of somebody else may stand behind one.
bool IsReallyAt(const OpenedFile& file, const std::string& path) {
  return Taped(
      file.tape,
      [&] {
        char real[PATH_MAX];
        const ssize_t size = readlink(absl::StrCat("/proc/self/fd/", file.fd.get()).c_str(), real, sizeof real);
        return size > 0 && absl::string_view(real, static_cast<size_t>(size)) == path;
      },
      "really at ", path);
}

bool SameBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// The same file under several names has one.
std::string IdentityOf(const ImageFile& file) {
  return absl::StrCat(file.device, " ", file.inode, " ", file.size, " ", file.modified_ns);
}

// Below the debug root, relative to it.
std::optional<std::string> BuildIdPath(const ElfImage& image) {
  if (image.build_id().size() < 2) return std::nullopt;
  const std::string text = BuildIdText(image.build_id());
  return absl::StrCat("/.build-id/", text.substr(0, 2), "/", text.substr(2), ".debug");
}

}  // namespace

// Whether there is room for them in the bounds.
bool DebugFileFinder::TakeCrcBytes(const Process& process, uint64_t bytes) {
  uint64_t& of_process = crc_bytes_of_process_.Of(process);
  const uint64_t most = of_process == 0 ? bounds_.first_file : bounds_.of_process;
  if (of_process + bytes > most) return false;
  const MonotonicTime now = images_.clock().Now();
  const uint64_t passed_ms = (now.ns - std::min(crc_bytes_counted_, now).ns) / kMillisecondNs;
  // Beyond this time all of it has come back.
  const uint64_t all_ms = 1000 * bounds_.of_all / bounds_.a_second;
  crc_bytes_left_ += std::min(passed_ms, all_ms) * bounds_.a_second / 1000;
  crc_bytes_left_ = std::min(crc_bytes_left_, bounds_.of_all);
  if (passed_ms > 0) crc_bytes_counted_ = now;
  if (bytes > crc_bytes_left_) return false;
  of_process += bytes;
  crc_bytes_ += bytes;
  crc_bytes_left_ -= bytes;
  return true;
}

// nullopt: beyond the bounds.
std::optional<uint32_t> DebugFileFinder::CrcOf(const Process& process, const ImageFile& file) {
  const std::string identity = IdentityOf(file);
  if (const auto known = crcs_.find(identity); known != crcs_.end()) return known->second;
  const std::span<const std::byte> bytes = file.bytes();
  if (!TakeCrcBytes(process, bytes.size())) {
    ++unchecked_;
    return std::nullopt;
  }
  const auto crc =
      static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
  if (crcs_.size() >= kMaxKnown) crcs_.clear();
  crcs_[identity] = crc;
  return crc;
}

std::optional<DebugFile> DebugFileFinder::Accept(const Process& process, std::shared_ptr<const ImageFile> file,
                                                 const ElfImage& image) {
  if (file->bytes().data() == image.bytes().data()) return std::nullopt;  // a link to itself
  absl::StatusOr<ElfImage> debug = ElfImage::Parse(file->bytes());
  if (!debug.ok() || !debug->symtab()) return std::nullopt;
  const bool both_have_ids = !image.build_id().empty() && !debug->build_id().empty();
  const std::optional<DebugLink> link = image.debug_link();
  bool matches = both_have_ids && SameBytes(image.build_id(), debug->build_id());
  if (!both_have_ids && link.has_value()) {
    const std::optional<uint32_t> crc = CrcOf(process, *file);
    if (!crc) return std::nullopt;
    matches = *crc == link->crc;
  }
  if (!matches || file->content.damaged()) {
    ++mismatches_;
    return std::nullopt;
  }
  return DebugFile{std::move(file), *std::move(debug)};
}

std::optional<DebugFileFinder::Places> DebugFileFinder::PlacesFor(absl::string_view image_path, const ElfImage& image) {
  image_path = WithoutDeletedMark(image_path);
  const size_t slash = image_path.rfind('/');
  if (slash == absl::string_view::npos || image_path.front() != '/' || HasDotComponents(image_path))
    return std::nullopt;
  const absl::string_view folder = image_path.substr(0, slash);
  const absl::string_view file_name = image_path.substr(slash + 1);
  const std::optional<DebugLink> link = image.debug_link();
  Places places;
  if (const std::optional<std::string> by_id = BuildIdPath(image)) places.in_debug_root.push_back(*by_id);
  std::vector<std::string> names;
  if (link && IsPlainFileName(link->file_name)) names.emplace_back(link->file_name);
  for (const absl::string_view suffix : {".dbg", ".debug"}) {
    std::string name = absl::StrCat(file_name, suffix);
    if (names.empty() || names.front() != name) names.push_back(std::move(name));
  }
  for (const std::string& name : names) {
    places.beside.push_back(absl::StrCat(folder, "/", name));
    places.beside.push_back(absl::StrCat(folder, "/.debug/", name));
    places.in_debug_root.push_back(absl::StrCat(folder, "/", name));
  }
  return places;
}

std::shared_ptr<const ImageFile> DebugFileFinder::OpenOnHost(const Process& process, const std::string& path,
                                                             std::optional<uid_t> image_owner, bool beside) {
  const absl::StatusOr<OpenedFile> opened = process.files.OpenOnHost(path);
  if (!opened.ok()) return nullptr;
  const struct stat& status = opened->status;
  if (status.st_uid != 0 && status.st_uid != image_owner) return nullptr;
  if (IsOnFuse(*opened) || (beside && !IsReallyAt(*opened, path))) return nullptr;
  if (on_host_.size() >= kMaxKnown) on_host_.clear();
  std::weak_ptr<const ImageFile>& known = on_host_[absl::StrCat(
      status.st_dev, " ", status.st_ino, " ", status.st_size, " ", status.st_mtim.tv_sec, " ", status.st_mtim.tv_nsec)];
  if (std::shared_ptr<const ImageFile> shared = known.lock()) return shared;
  absl::StatusOr<MappedFile> content = opened->Map(ImageFiles::kMaxImageBytes);
  if (!content.ok()) return nullptr;
  auto file = std::make_shared<ImageFile>();
  file->path = path;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  file->size = static_cast<uint64_t>(status.st_size);
  file->modified_ns =
      static_cast<uint64_t>(status.st_mtim.tv_sec) * kSecondNs + static_cast<uint64_t>(status.st_mtim.tv_nsec);
  file->content = *std::move(content);
  known = file;
  return file;
}

std::optional<DebugFile> DebugFileFinder::FindOnHost(const Process& process, absl::string_view image_path,
                                                     const ImageFile& image_file, const ElfImage& image) {
  main_loop_.Check();
  const std::optional<Places> places = PlacesFor(image_path, image);
  if (!places) return std::nullopt;
  std::optional<uid_t> owner;
  const absl::StatusOr<OpenedFile> here = process.files.OpenOnHost(std::string(WithoutDeletedMark(image_path)));
  if (here.ok() && here->status.st_dev == image_file.device && here->status.st_ino == image_file.inode) {
    owner = here->status.st_uid;
  }
  for (const std::string& path : places->in_debug_root) {
    std::shared_ptr<const ImageFile> file = OpenOnHost(process, absl::StrCat(host_debug_root_, path), owner, false);
    if (file == nullptr) continue;
    if (std::optional<DebugFile> debug = Accept(process, std::move(file), image)) return debug;
  }
  if (!owner) return std::nullopt;  // the path means another file here
  for (const std::string& path : places->beside) {
    std::shared_ptr<const ImageFile> file = OpenOnHost(process, path, owner, true);
    if (file == nullptr) continue;
    if (std::optional<DebugFile> debug = Accept(process, std::move(file), image)) return debug;
  }
  return std::nullopt;
}

std::optional<DebugFile> DebugFileFinder::FindInTarget(const Process& process, const Places& places,
                                                       const ElfImage& image) {
  std::vector<std::string> paths;
  for (const std::string& path : places.in_debug_root) paths.push_back(absl::StrCat(kDebugRoot, path));
  paths.insert(paths.end(), places.beside.begin(), places.beside.end());
  for (const std::string& path : paths) {
    const absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_.GetByPath(process, path);
    if (!file.ok()) continue;
    if (std::optional<DebugFile> debug = Accept(process, *file, image)) return debug;
  }
  return std::nullopt;
}

std::optional<DebugFile> DebugFileFinder::Find(const Process& process, absl::string_view image_path,
                                               const std::shared_ptr<const ImageFile>& image_file,
                                               const ElfImage& image) {
  main_loop_.Check();
  const std::optional<Places> places = PlacesFor(image_path, image);
  if (!places) return std::nullopt;
  if (known_.size() >= kMaxKnown) known_.clear();
  Known& known = known_[absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(image_file.get())), " ",
                                     MountsIdentity(process), " ", image_path)];
  if (known.image.lock() == image_file) {
    if (!known.found) return std::nullopt;
    if (std::shared_ptr<const ImageFile> file = known.debug.lock()) {
      absl::StatusOr<ElfImage> debug = ElfImage::Parse(file->bytes());
      if (debug.ok() && !file->content.damaged()) return DebugFile{std::move(file), *std::move(debug)};
    }
  }
  const uint64_t mismatches = mismatches_, unchecked = unchecked_;
  std::optional<DebugFile> debug = FindOnHost(process, image_path, *image_file, image);
  if (!debug) {
    mismatches_ = mismatches;  // the same files, where the target sees those of the host
    debug = FindInTarget(process, *places, image);
  }
  known = {image_file, debug.has_value(), debug ? debug->file : nullptr};
  // The next process has a share of its own, and later there is more for all.
  if (!debug && unchecked_ > unchecked) known = Known();
  return debug;
}

}  // namespace clrsampler
