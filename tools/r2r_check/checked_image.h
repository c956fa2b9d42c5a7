// An R2R image on disk (or inside a single-file host) for the checks of this program.
#ifndef CLRSAMPLER_TOOLS_R2R_CHECK_CHECKED_IMAGE_H_
#define CLRSAMPLER_TOOLS_R2R_CHECK_CHECKED_IMAGE_H_

#include <fcntl.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/bundle_manifest.h"
#include "formats/pe/r2r_image.h"
#include "os/mapped_file.h"
#include "os/path_text.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {

inline absl::StatusOr<std::shared_ptr<MappedFile>> MapWholeFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, path);
  absl::StatusOr<MappedFile> file = MappedFile::Map(fd.get(), 0, 0, uint64_t{4} << 30);
  RETURN_IF_ERROR(Annotate(file.status(), path));
  return std::make_shared<MappedFile>(*std::move(file));
}

// Assemblies in some folders, and in a bundle.
class FolderOpener : public AssemblyOpener {
 public:
  explicit FolderOpener(std::vector<std::string> folders) : folders_(std::move(folders)) {}
  void UseBundle(std::shared_ptr<MappedFile> host, const BundleManifest* manifest) {
    host_ = std::move(host);
    manifest_ = manifest;
  }
  std::optional<OpenedAssembly> Open(absl::string_view simple_name) override {
    const std::string file_name = absl::StrCat(simple_name, ".dll");
    if (manifest_ != nullptr) {
      if (const BundleEntry* entry = manifest_->Named(file_name); entry != nullptr && entry->compressed_bytes == 0) {
        return OpenedAssembly{host_->bytes().subspan(entry->offset, entry->bytes), host_};
      }
    }
    for (const std::string& folder : folders_) {
      const absl::StatusOr<std::shared_ptr<MappedFile>> file = MapWholeFile(std::filesystem::path(folder) / file_name);
      if (file.ok()) return OpenedAssembly{(*file)->bytes(), *file};
    }
    return std::nullopt;
  }

 private:
  std::vector<std::string> folders_;
  std::shared_ptr<MappedFile> host_;
  const BundleManifest* manifest_ = nullptr;
};

inline std::string StemOf(absl::string_view path) {
  std::string name(FileNameOf(path));
  return name.size() > 4 && name.ends_with(".dll") ? name.substr(0, name.size() - 4) : name;
}

// `jitdump MAPS`: the check against a live run (live_run.cc). Number of records that are wrong.
int CheckLiveRun(const std::string& dump_path, const std::string& maps_path,
                 const std::vector<std::string>& references);

// `live DUMP PID`: the check against a process that still runs (live_process.cc). Number of records that are wrong.
int CheckLiveProcess(const std::string& dump_path, uint32_t pid);

}  // namespace clrsampler

#endif  // CLRSAMPLER_TOOLS_R2R_CHECK_CHECKED_IMAGE_H_
