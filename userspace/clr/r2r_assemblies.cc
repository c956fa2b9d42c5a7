#include "clr/r2r_assemblies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/bundle_content.h"
#include "formats/proc/maps_text.h"
#include "os/path_text.h"

namespace clrsampler {

std::optional<OpenedAssembly> R2rAssemblies::Open(absl::string_view simple_name) {
  main_loop_.Check();
  const std::string file_name = absl::StrCat(simple_name, ".dll");
  if (file_.bundle) {
    const BundleEntry* entry = file_.bundle->Named(file_name);
    if (entry != nullptr && entry->compressed_bytes == 0) {
      const auto bytes = SliceAt(file_.content->bytes(), entry->offset, entry->bytes);
      if (bytes) return OpenedAssembly{*bytes, file_.content};
    } else if (entry != nullptr) {
      if (const auto unpacked = Inflate(*entry)) return OpenedAssembly{*unpacked, unpacked};
    }
  }
  if (file_.path.empty()) return std::nullopt;
  if (std::optional<OpenedAssembly> beside = OpenPath(absl::StrCat(FolderOf(file_.path), file_name))) return beside;
  for (const Mapping& mapping : process_.mappings.all()) {
    const absl::string_view name = FileNameOf(WithoutDeletedMark(mapping.path));
    if (name != file_name && name != "System.Private.CoreLib.dll") continue;
    if (std::optional<OpenedAssembly> other = OpenPath(absl::StrCat(FolderOf(mapping.path), file_name))) return other;
  }
  return std::nullopt;
}

std::optional<OpenedAssembly> R2rAssemblies::OpenPath(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_->GetByPath(process_, path);
  if (!file.ok()) return std::nullopt;
  // Assemblies that lack something are opened again for each new process.
  if (std::find(image_.opened.begin(), image_.opened.end(), *file) == image_.opened.end())
    image_.opened.push_back(*file);
  return OpenedAssembly{(*file)->bytes(), *file};
}

std::shared_ptr<const std::vector<std::byte>> R2rAssemblies::Inflate(const BundleEntry& entry) {
  if (const auto known = file_.inflated.find(entry.offset); known != file_.inflated.end()) return known->second;
  const uint64_t room = files_.RoomToUnpack(process_.key);
  if (entry.bytes > room) return nullptr;
  std::shared_ptr<const std::vector<std::byte>>& unpacked = file_.inflated[entry.offset];
  absl::StatusOr<std::vector<std::byte>> bytes = InflateBundleEntry(file_.content->bytes(), entry, room);
  if (!bytes.ok() || file_.content->content.damaged()) return nullptr;
  file_.inflated_bytes += bytes->size();
  unpacked = std::make_shared<const std::vector<std::byte>>(*std::move(bytes));
  return unpacked;
}

}  // namespace clrsampler
