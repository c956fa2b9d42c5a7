#include "clr/memory/runtime_modules.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/pe_image.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// CoreLib of 10.0.14 has 5 MB.
constexpr uint32_t kMaxMetadataBytes = 64 << 20;
constexpr uint32_t kMaxEmittedBytes = 16 << 20;
constexpr uint32_t kMaxHeaderBytes = 4096;

// Metadata of at most twice this size (a plugin's) is compared as a whole. Above it, both ends of this size each are
// compared. There are the sizes of the heaps and the row counts, and what compilers write last.
constexpr size_t kComparedBytes = 64 << 10;

constexpr uint32_t kLayoutIsMapped = 1;  // PEImageLayout flags: sections lie at their RVAs; else as in the file

// Where the metadata is in an image that lies in memory, from the bytes of its headers. PE/COFF and ECMA-335 II.25.
class MemoryImage {
 public:
  MemoryImage(MemoryReader& memory, uint64_t base, bool flat) : memory_(memory), base_(base), flat_(flat) {}

  absl::StatusOr<AddressRange> Metadata() {
    std::vector<std::byte> header(kMaxHeaderBytes);
    if (!memory_.Read(base_, header)) {
      header.resize(1024);
      if (!memory_.Read(base_, header)) return absl::UnavailableError("its header is not readable");
    }
    const uint64_t pe = LoadAt<uint32_t>(header, 60).value_or(0);
    if (LoadAt<uint32_t>(header, pe) != 0x4550) return absl::DataLossError("it is no PE image");
    const uint64_t sections = LoadAt<uint16_t>(header, pe + 6).value_or(0);
    const uint64_t optional_bytes = LoadAt<uint16_t>(header, pe + 20).value_or(0);
    const uint64_t optional = pe + 24;
    const bool pe64 = LoadAt<uint16_t>(header, optional) == 0x20B;
    const uint64_t directories = optional + (pe64 ? 112 : 96);
    const uint32_t cli_rva = LoadAt<uint32_t>(header, directories + 14 * 8).value_or(0);
    for (uint64_t i = 0; i < sections; ++i) {
      const uint64_t row = optional + optional_bytes + 40 * i;
      const auto raw_offset = LoadAt<uint32_t>(header, row + 20);
      if (!raw_offset) break;
      const uint32_t bytes = std::max(*LoadAt<uint32_t>(header, row + 8), *LoadAt<uint32_t>(header, row + 16));
      sections_.push_back({*LoadAt<uint32_t>(header, row + 12), bytes, *raw_offset});
    }
    std::array<std::byte, 72> cli;
    if (cli_rva == 0 || !ReadRva(cli_rva, cli)) return absl::DataLossError("it has no CLI header");
    const uint32_t rva = *LoadAt<uint32_t>(cli, 8), bytes = *LoadAt<uint32_t>(cli, 12);
    if (bytes == 0 || bytes > kMaxMetadataBytes) return absl::DataLossError("its metadata has an impossible size");
    const std::optional<uint64_t> address = AddressOf(rva, bytes);
    if (!address) return absl::DataLossError("its metadata lies in no section");
    return AddressRange{*address, *address + bytes};
  }

 private:
  struct Section {
    uint32_t rva, bytes, offset;
  };
  std::optional<uint64_t> AddressOf(uint32_t rva, uint32_t bytes) const {
    if (!flat_) return base_ + rva;
    for (const Section& section : sections_) {
      if (rva < section.rva || rva - section.rva >= section.bytes) continue;
      if (bytes > section.bytes - (rva - section.rva)) return std::nullopt;
      return base_ + section.offset + (rva - section.rva);
    }
    return std::nullopt;
  }
  bool ReadRva(uint32_t rva, std::span<std::byte> into) {
    const std::optional<uint64_t> address = AddressOf(rva, static_cast<uint32_t>(into.size()));
    return address && memory_.Read(*address, into);
  }

  MemoryReader& memory_;
  uint64_t base_;
  bool flat_;
  std::vector<Section> sections_;
};

absl::StatusOr<std::vector<std::byte>> Copy(MemoryReader& memory, AddressRange metadata) {
  // The size is the target's word. Memory grows only with the bytes that can really be read.
  constexpr uint64_t kStep = 1 << 20;
  std::vector<std::byte> bytes;
  for (uint64_t at = metadata.begin; at < metadata.end; at += kStep) {
    const size_t done = bytes.size();
    bytes.resize(done + std::min(kStep, metadata.end - at));
    if (!memory.Read(at, std::span(bytes).subspan(done))) {
      return absl::UnavailableError("its metadata is not readable");
    }
  }
  return bytes;
}

// `id`: a part of `bytes` that no other build of the module has, which may lie between the ends; empty: not known.
bool Stands(MemoryReader& memory, uint64_t address, std::span<const std::byte> bytes, std::span<const std::byte> id) {
  const auto equal = [&](size_t offset, size_t count) {
    std::vector<std::byte> now(count);
    return memory.Read(address + offset, now) && std::ranges::equal(now, bytes.subspan(offset, count));
  };
  if (bytes.size() <= 2 * kComparedBytes) return equal(0, bytes.size());
  if (!equal(0, kComparedBytes) || !equal(bytes.size() - kComparedBytes, kComparedBytes)) return false;
  return id.empty() || equal(static_cast<size_t>(id.data() - bytes.data()), std::min(id.size(), kComparedBytes));
}

}  // namespace

std::shared_ptr<const std::vector<std::byte>> MetadataCopies::Share(std::vector<std::byte> bytes) {
  const uint64_t hash = absl::HashOf(AsText(bytes));
  std::weak_ptr<const std::vector<std::byte>>& known = by_hash_[hash];
  if (auto same = known.lock(); same != nullptr && *same == bytes) return same;
  auto shared = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  known = shared;
  if (by_hash_.size() > 1024) {
    absl::erase_if(by_hash_, [](const auto& entry) { return entry.second.expired(); });
  }
  return shared;
}

size_t MetadataCopies::heap_bytes() const {
  size_t sum = 0;
  for (const auto& [hash, copy] : by_hash_) {
    if (const auto bytes = copy.lock()) sum += bytes->size();
  }
  return sum;
}

std::shared_ptr<const RuntimeModule> RuntimeModules::At(MemoryProbe& probe, uint64_t address, bool transient) {
  main_loop_.Check();
  // A module that can't be freed keeps its address for good, for every caller.
  if (const auto known = permanent_.find(address); known != permanent_.end()) return known->second;
  ModuleMap& modules = transient ? transient_ : permanent_;
  if (const auto known = modules.find(address); known != modules.end()) return known->second;
  return Reload(probe, address, transient);
}

std::shared_ptr<const RuntimeModule> RuntimeModules::Reload(MemoryProbe& probe, uint64_t address, bool transient) {
  main_loop_.Check();
  const bool to_transient = transient && !permanent_.contains(address);
  ModuleMap& modules = to_transient ? transient_ : permanent_;
  uint64_t& held = to_transient ? transient_held_bytes_ : held_bytes_;
  if (modules.size() >= kMaxModules) {
    modules.clear();
    held = 0;
  }
  const auto known = modules.find(address);
  // Nothing was added to emitted metadata since it was copied: a row that is not there now never was.
  if (known != modules.end() && known->second->emitted && known->second->copied_bytes == EmittedBytes(address)) {
    return known->second;
  }
  std::shared_ptr<const RuntimeModule> module = Load(probe, address, to_transient);
  if (module == nullptr) return nullptr;
  std::shared_ptr<const RuntimeModule>& slot = modules[address];
  if (slot != nullptr) held -= slot->copied_bytes;
  held += module->copied_bytes;
  slot = module;
  return module;
}

std::unique_ptr<RuntimeModule> RuntimeModules::Load(MemoryProbe& probe, uint64_t address, bool transient) {
  auto module = std::make_unique<RuntimeModule>();
  module->address = address;
  probe.Require(runtime_.contains(probe.Pointer(address)), "a module is of no class of the runtime");
  const uint64_t assembly_file = probe.Pointer(address + layout_.module.assembly_file);
  const uint64_t image = assembly_file == 0 ? 0 : probe.Pointer(assembly_file + layout_.pe_assembly_image);
  uint64_t base = 0;
  uint32_t size = 0;
  bool flat = true;
  if (image != 0) {
    for (const uint32_t slot : {layout_.pe_image.loaded, layout_.pe_image.flat}) {
      const uint64_t layout = probe.Pointer(image + slot);
      if (layout == 0) continue;
      std::array<std::byte, RuntimeLayout::PeLayout::kBytes> fields{};
      probe.Read(layout, std::span(fields).first(layout_.pe_layout.flags + sizeof(uint32_t)));
      base = FieldOf<uint64_t>(fields, layout_.pe_layout.base);
      size = FieldOf<uint32_t>(fields, layout_.pe_layout.size);
      flat = (FieldOf<uint32_t>(fields, layout_.pe_layout.flags) & kLayoutIsMapped) == 0;
      break;
    }
  }
  if (layout_.module.base && base != 0) {
    const uint64_t told = probe.Pointer(address + *layout_.module.base);
    probe.Require(told == 0 || told == base, "a module and its image disagree on where it lies");
  }
  if (!probe.ok()) return nullptr;
  module->loaded = {base, base + size};
  module->flat = flat;
  const absl::Status status =
      base != 0 ? LoadImage(base, flat, transient, *module) : LoadEmitted(probe, address, *module);
  if (!probe.ok()) return nullptr;
  if (!status.ok()) module->trouble = std::string(status.message());
  if (module->names.tables) {
    if (const auto name = module->names.tables->AssemblyName()) module->names.name = std::string(*name);
  }
  return module;
}

// The content of the target's memory decides. Addresses of unloaded assemblies are used again, by files that differ in
// a digit, and by other builds of the same assembly.
absl::Status RuntimeModules::LoadImage(uint64_t base, bool flat, bool transient, RuntimeModule& module) {
  ASSIGN_OR_RETURN(const AddressRange metadata, MemoryImage(memory_, base, flat).Metadata());
  const auto stands = [&](std::span<const std::byte> bytes, const MetadataTables& tables) {
    const std::span<const std::byte> id = transient ? tables.guids() : std::span<const std::byte>();
    return bytes.size() == metadata.end - metadata.begin && Stands(memory_, metadata.begin, bytes, id);
  };
  if (const auto before = forgotten_.find(module.address);
      before != forgotten_.end() && before->second->names.tables &&
      stands(before->second->metadata, *before->second->names.tables)) {
    module.names.tables = before->second->names.tables;
    module.content = before->second->content;
    module.metadata = before->second->metadata;
    module.image = before->second->image;
    module.path = before->second->path;
    module.copied_bytes = before->second->copied_bytes;
    return absl::OkStatus();
  }
  if (std::optional<MappedContent> mapped = files_ ? files_(base) : std::nullopt) {
    const absl::StatusOr<PeImage> pe = PeImage::Parse(mapped->bytes);
    const auto place = pe.ok() ? pe->metadata() : std::nullopt;
    const auto bytes = place ? pe->Bytes(*place) : std::nullopt;
    absl::StatusOr<MetadataTables> tables =
        bytes ? MetadataTables::Parse(*bytes) : absl::NotFoundError("no metadata in the file");
    if (tables.ok() && stands(*bytes, *tables)) {
      module.names.tables = *std::move(tables);
      module.content = std::move(mapped->keep_alive);
      module.metadata = *bytes;
      module.image = mapped->bytes;
      module.path = std::move(mapped->path);
      return absl::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(std::vector<std::byte> bytes, Copy(memory_, metadata));
  return Take(std::move(bytes), module);
}

uint32_t RuntimeModules::EmittedBytes(uint64_t address) {
  if (!layout_.module.dynamic_metadata) return 0;
  MemoryProbe probe(memory_);
  const uint64_t copy = probe.Pointer(address + *layout_.module.dynamic_metadata);
  return copy == 0 ? 0 : probe.Value<uint32_t>(copy);
}

absl::Status RuntimeModules::LoadEmitted(MemoryProbe& probe, uint64_t address, RuntimeModule& module) {
  module.emitted = true;
  if (!layout_.module.dynamic_metadata) {
    return absl::UnimplementedError(
        absl::StrCat(".NET ", layout_.major, " keeps no copy of the names of emitted code"));
  }
  MemoryProbe own(memory_);
  const uint64_t slot = address + *layout_.module.dynamic_metadata;
  const uint64_t copy = own.Pointer(slot);
  const uint32_t bytes = copy == 0 ? 0 : own.Value<uint32_t>(copy);
  if (!own.ok() || bytes == 0) return absl::UnavailableError("the runtime keeps no copy of its metadata");
  if (bytes > kMaxEmittedBytes) return absl::DataLossError("its metadata has an impossible size");
  absl::StatusOr<std::vector<std::byte>> metadata = Copy(memory_, {copy + 4, copy + 4 + bytes});
  // The runtime frees its copy when it makes a larger one, so these bytes may be anything by now.
  if (own.Pointer(slot) != copy || own.Value<uint32_t>(copy) != bytes) {
    probe.Fail(ProbeFailure::kChanged, "emitted metadata grew while it was copied");
    return absl::UnavailableError(probe.detail());
  }
  RETURN_IF_ERROR(metadata.status());
  return Take(*std::move(metadata), module);
}

absl::Status RuntimeModules::Take(std::vector<std::byte> metadata, RuntimeModule& module) {
  if (held_bytes_ + transient_held_bytes_ + metadata.size() > kMaxCopiedBytes) {
    return absl::ResourceExhaustedError("more metadata than is copied of one process");
  }
  std::shared_ptr<const std::vector<std::byte>> shared = copies_.Share(std::move(metadata));
  ASSIGN_OR_RETURN(module.names.tables, MetadataTables::Parse(*shared));
  module.copied_bytes = shared->size();
  module.metadata = *shared;
  module.content = std::move(shared);
  ++copied_;
  return absl::OkStatus();
}

}  // namespace clrsampler
