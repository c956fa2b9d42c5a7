#include "clr/memory/method_line_reader.h"

#include <vector>

#include "clr/memory/il_map_reader.h"
#include "clr/memory/image_copy.h"
#include "formats/names/tier.h"
#include "formats/pe/pe_image.h"

namespace clrsampler {

std::shared_ptr<const MethodLines> MethodLineReader::LinesOf(const Process& process, RuntimeMemory& runtime,
                                                             const ManagedCode& found) {
  main_loop_.Check();
  if (pdbs_ == nullptr || found.kind != ManagedCode::Kind::kMethod || found.module == nullptr) return nullptr;
  // The offsets of a thunk are those of IL that the runtime made.
  if (found.name.async_body == AsyncBody::kThunk) return nullptr;
  if (assemblies_.size() >= kMaxAssemblies) assemblies_.clear();
  const auto [known, is_new] = assemblies_.try_emplace({found.module->content, found.module->metadata.data()});
  if (is_new) known->second = AssemblyOf(process, runtime.memory(), *found.module);
  if (known->second == nullptr) return nullptr;
  absl::StatusOr<IlMap> map = ReadIlMap(runtime.memory(), runtime.layout().debug_info, found.code);
  if (absl::IsNotFound(map.status())) return nullptr;
  if (!map.ok() || (found.transient && !runtime.Stands(found.code))) {
    ++maps_failed_;
    return nullptr;
  }
  ++maps_read_;
  constexpr uint32_t kRidMask = 0xFFFFFF;
  const uint32_t rid = found.token & kRidMask;
  pdbs_->NoteSources(process, *known->second, rid);
  const LineKind kind = tier::IsUnoptimised(found.name.tier) ? LineKind::kExact : LineKind::kOptimised;
  return std::make_shared<MethodLines>(MethodLines{*std::move(map), known->second, rid, kind});
}

std::shared_ptr<AssemblySlot> MethodLineReader::AssemblyOf(const Process& process, MemoryReader& memory,
                                                           const RuntimeModule& module) {
  if (!module.image.empty()) {
    const absl::StatusOr<PeImage> image = PeImage::Parse(module.image);
    return image.ok() ? pdbs_->Find(process, *image, module.content, module.path, module.names.name) : nullptr;
  }
  // It comes out of a compressed bundle, or was loaded from bytes. A PDB beside the program may belong to it.
  if (module.loaded.begin == module.loaded.end) return nullptr;
  const absl::StatusOr<std::vector<std::byte>> copy = CopyImage(memory, module.loaded);
  if (!copy.ok()) return nullptr;
  const absl::StatusOr<PeImage> image = PeImage::Parse(*copy, module.flat ? PeLayout::kFile : PeLayout::kLoaded);
  return image.ok() ? pdbs_->Find(process, *image, nullptr, process.executable, module.names.name) : nullptr;
}

}  // namespace clrsampler
