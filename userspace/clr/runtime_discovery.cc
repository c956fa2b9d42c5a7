#include "clr/runtime_discovery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/bundle_manifest.h"
#include "formats/pe/pe_image.h"
#include "formats/proc/maps_text.h"
#include "os/path_text.h"
#include "process/maps_mapping.h"

namespace clrsampler {
namespace {

constexpr uint8_t kBundledAssembly = 1;

// Images of an emulated process that are opened: .NET programs map some 60, the runtime's among the first 20.
constexpr size_t kMaxEmulatedImages = 1024;

bool IsComposite(const PeImage& image) {
  return image.r2r().has_value() && image.r2r()->core.Find(R2rSectionType::kComponentAssemblies) != nullptr;
}

// The number that is added to an address in the image, if the mapping shows that segment of it; modulo 2^64.
uint64_t BiasOf(const Mapping& mapping, const LoadSegment& segment) {
  return mapping.start - mapping.file_offset - (segment.address.value - segment.offset.value);
}

// The segment that a mapping shows: it begins at the segment's page or inside it.
const LoadSegment* SegmentOf(const std::vector<LoadSegment>& segments, const Mapping& mapping) {
  const uint64_t length = mapping.end - mapping.start;
  for (const LoadSegment& segment : segments) {
    if (!segment.executable) continue;
    const uint64_t begin = segment.offset.value, end = begin + segment.file_bytes;
    if (mapping.file_offset < end && (mapping.file_offset >= begin || begin - mapping.file_offset < length)) {
      return &segment;
    }
  }
  return nullptr;
}

}  // namespace

absl::string_view DeploymentFormText(DeploymentForm form) {
  switch (form) {
    case DeploymentForm::kFrameworkDependent:
      return "framework-dependent";
    case DeploymentForm::kSelfContained:
      return "self-contained";
    case DeploymentForm::kSingleFile:
      return "single-file";
    case DeploymentForm::kNativeAot:
      return "native-aot";
    case DeploymentForm::kEmulated:
      return "emulated";
  }
  return "unknown";
}

absl::string_view LibcText(LibcFlavour libc) {
  if (libc == LibcFlavour::kGlibc) return "glibc";
  return libc == LibcFlavour::kMusl ? "musl" : "unknown";
}

absl::string_view MachineText(ElfMachine machine) { return machine == ElfMachine::kX64 ? "x64" : "arm64"; }

std::string EmulationText(const DotNetRuntime& runtime) {
  return absl::StrCat(MachineText(runtime.machine), " program under emulation: names are not possible");
}

std::optional<uint64_t> DotNetRuntime::AddressOf(absl::string_view exported_name) const {
  for (const RuntimeExport& one : exports) {
    if (one.name == exported_name) return one.address.value + load_bias;
  }
  return std::nullopt;
}

std::optional<RuntimeDiscovery::FileKey> RuntimeDiscovery::KeyOf(const Process& process, const Mapping& mapping) {
  if (cache_by_ == CacheBy::kMapping) {
    return FileKey(mapping.device_major, mapping.device_minor, mapping.inode, 0, mapping.path);
  }
  const auto file = images_.Get(process, mapping);
  if (!file.ok()) return std::nullopt;
  return FileKey((*file)->device, (*file)->inode, (*file)->size, (*file)->modified_ns, "");
}

const RuntimeDiscovery::ImageFacts* RuntimeDiscovery::FactsOf(const Process& process, const Mapping& mapping) {
  const std::optional<FileKey> key = KeyOf(process, mapping);
  if (!key.has_value()) return nullptr;
  const auto known = facts_.find(*key);
  if (known != facts_.end()) return known->second.get();
  const auto file = images_.Get(process, mapping);
  if (!file.ok()) return nullptr;  // not remembered: another process may be allowed to open it
  auto facts = std::make_unique<ImageFacts>();
  const std::span<const std::byte> bytes = (*file)->bytes();
  if (ElfImage::HasMagic(bytes)) {
    if (const auto elf = ElfImage::Parse(bytes); elf.ok()) {
      facts->machine = elf->machine();
      facts->runtime = ReadRuntimeImage(*elf);
      facts->libc = LibcOfInterpreter(elf->interpreter());
      if (facts->runtime.kind != RuntimeImageKind::kNone) {
        facts->segments.assign(elf->segments().begin(), elf->segments().end());
      }
    }
  } else if (LooksLikePe(bytes)) {
    if (const auto pe = PeImage::Parse(bytes); pe.ok()) {
      facts->ready_to_run = pe->r2r().has_value();
      facts->composite = IsComposite(*pe);
    }
  }
  if (facts_.size() >= kMaxFiles) facts_.clear();  // what is asked again is read again
  return facts_.emplace(*key, std::move(facts)).first->second.get();
}

const RuntimeDiscovery::BundleFacts& RuntimeDiscovery::BundleOf(const Process& process, const Mapping& mapping) {
  static constexpr BundleFacts kNoBundle;
  const std::optional<FileKey> key = KeyOf(process, mapping);
  if (!key.has_value()) return kNoBundle;
  if (bundles_.size() >= kMaxFiles && !bundles_.contains(*key)) bundles_.clear();
  const auto [known, is_new] = bundles_.try_emplace(*key);
  if (!is_new) return known->second;
  const auto file = images_.Get(process, mapping);
  if (!file.ok()) return known->second;
  const auto manifest = BundleManifest::Find((*file)->bytes());
  if (!manifest.ok()) return known->second;
  BundleFacts& facts = known->second;
  facts.found = true;
  for (const BundleEntry& entry : manifest->entries()) {
    if (entry.compressed_bytes != 0) facts.compressed = true;
    if (entry.type != kBundledAssembly || entry.compressed_bytes != 0) continue;
    const auto bytes = SliceAt((*file)->bytes(), entry.offset, entry.bytes);
    if (!bytes.has_value() || !LooksLikePe(*bytes)) continue;
    const auto pe = PeImage::Parse(*bytes);
    if (pe.ok() && IsComposite(*pe)) facts.composite = true;
  }
  return facts;
}

void RuntimeDiscovery::SetForm(const Process& process, const ImageFacts& image, DotNetRuntime& runtime) {
  switch (image.runtime.kind) {
    case RuntimeImageKind::kNativeAot:
      runtime.form = DeploymentForm::kNativeAot;
      return;
    case RuntimeImageKind::kSingleFileHost:
      runtime.form = DeploymentForm::kSingleFile;
      break;
    default:
      runtime.form = FolderOf(runtime.mapping.path) == FolderOf(process.executable)
                         ? DeploymentForm::kSelfContained
                         : DeploymentForm::kFrameworkDependent;
      break;
  }
  for (const Mapping& mapping : process.mappings.all()) {
    if (mapping.kind != MappingKind::kFile || mapping.path != process.executable) continue;
    const BundleFacts& bundle = BundleOf(process, mapping);
    runtime.bundled = bundle.found;
    runtime.bundle_compressed = bundle.compressed;
    if (bundle.composite) runtime.composite = true;
    if (bundle.compressed && !runtime.composite.value_or(false)) runtime.composite.reset();
    return;
  }
}

std::optional<DotNetRuntime> RuntimeDiscovery::Find(const Process& process) {
  main_loop_.Check();
  const ImageFacts* best = nullptr;
  DotNetRuntime runtime;
  LibcFlavour any_libc = LibcFlavour::kUnknown;
  bool composite = false;
  for (const Mapping& mapping : process.mappings.all()) {
    if (mapping.kind != MappingKind::kFile) continue;
    const ImageFacts* facts = FactsOf(process, mapping);
    if (facts == nullptr) continue;
    if (facts->libc != LibcFlavour::kUnknown) {
      // The program decides. The next best is a library that can be run, such as libc itself.
      if (mapping.path == process.executable) runtime.libc = facts->libc;
      any_libc = facts->libc;
    }
    runtime.precompiled |= facts->ready_to_run;
    composite |= facts->composite;
    if (facts->runtime.kind == RuntimeImageKind::kNone) continue;
    const LoadSegment* segment = SegmentOf(facts->segments, mapping);
    if (segment == nullptr) {  // behind the image's own code: an assembly of the bundle
      if (facts->runtime.kind == RuntimeImageKind::kSingleFileHost) runtime.precompiled = true;
      continue;
    }
    if (facts->runtime.kind == RuntimeImageKind::kStandaloneGc) {
      runtime.standalone_gc = mapping;
      continue;
    }
    // A CoreCLR process may have loaded NativeAOT libraries. The greater kind is the one that runs the program.
    if (best != nullptr && facts->runtime.kind <= best->runtime.kind) continue;
    best = facts;
    runtime.mapping = mapping;
    runtime.load_bias = BiasOf(mapping, *segment);
  }
  if (best == nullptr) return std::nullopt;
  if (MachineOf(process).value_or(best->runtime.machine) != best->runtime.machine) return std::nullopt;
  runtime.kind = best->runtime.kind;
  runtime.version = best->runtime.version;
  runtime.exports = best->runtime.exports;
  runtime.machine = best->runtime.machine;
  if (runtime.libc == LibcFlavour::kUnknown) runtime.libc = any_libc;
  runtime.composite = composite;
  SetForm(process, *best, runtime);
  return runtime;
}

std::optional<ElfMachine> RuntimeDiscovery::MachineOf(const Process& process) {
  for (const Mapping& mapping : process.mappings.all()) {
    if (mapping.kind != MappingKind::kFile || mapping.path != process.executable) continue;
    const ImageFacts* facts = FactsOf(process, mapping);
    return facts == nullptr ? std::nullopt : facts->machine;
  }
  return std::nullopt;
}

std::optional<DotNetRuntime> RuntimeDiscovery::FindEmulated(const Process& process) {
  main_loop_.Check();
  if (!process.mappings.has_jit_memory()) return std::nullopt;  // nothing is translated
  const std::optional<ElfMachine> own = MachineOf(process);
  const auto text = process.files.ReadProc("maps", kMaxMapsBytes);
  if (!own.has_value() || !text.ok()) return std::nullopt;
  std::optional<DotNetRuntime> found;
  std::optional<Mapping> head;        // of the image whose mappings follow
  const ImageFacts* facts = nullptr;  // of it
  LibcFlavour libc = LibcFlavour::kUnknown;
  size_t opened = 0;
  for (const MapsLine& line : ParseMaps(*text).lines) {
    const Mapping mapping = MappingOf(line);
    if (mapping.kind != MappingKind::kFile) continue;
    if (!head.has_value() || !ShowSameFile(*head, mapping)) {
      head.reset();
      if (mapping.file_offset != 0 || ++opened > kMaxEmulatedImages) continue;
      head = mapping;
      facts = FactsOf(process, mapping);
      if (facts != nullptr && facts->machine != own && facts->libc != LibcFlavour::kUnknown) libc = facts->libc;
    }
    if (facts == nullptr || facts->runtime.kind <= (found ? found->kind : RuntimeImageKind::kStandaloneGc)) continue;
    const LoadSegment* segment = SegmentOf(facts->segments, mapping);
    if (facts->machine == own || segment == nullptr) continue;
    // A file that is mapped to be read lies in one piece, and its code elsewhere than its addresses say.
    const uint64_t bias = BiasOf(*head, facts->segments.front());
    if (BiasOf(mapping, *segment) != bias) continue;
    found.emplace();
    found->kind = facts->runtime.kind;
    found->version = facts->runtime.version;
    found->exports = facts->runtime.exports;
    found->machine = facts->runtime.machine;
    found->mapping = mapping;
    found->load_bias = bias;
    found->form = DeploymentForm::kEmulated;
  }
  if (found) found->libc = libc;
  return found;
}

}  // namespace clrsampler
