// The modules (assemblies) of one process, by the address of the runtime's Module object, with their metadata.
//
// Metadata comes from the file behind the image where there is one (shared between processes, in the page cache) and it
// holds what the target has in memory. Else it is copied from the target: images that were loaded from bytes or
// unpacked from a compressed bundle, and the copy that the runtime keeps of Reflection.Emit's for debuggers (9 and
// newer).
#ifndef CLRSAMPLER_CLR_MEMORY_RUNTIME_MODULES_H_
#define CLRSAMPLER_CLR_MEMORY_RUNTIME_MODULES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clr/memory/code_ranges.h"
#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_layout.h"
#include "formats/pe/signature_names.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct RuntimeModule {
  uint64_t address = 0;
  SignatureModule names;                // simple assembly name; tables only where the metadata was found
  std::shared_ptr<const void> content;  // what `names.tables` points into
  std::span<const std::byte> metadata;  // a part of `content`
  // The file that it was loaded from, from its first byte on; a part of `content`. Empty: its metadata is in no file.
  std::span<const std::byte> image;
  std::string path;           // of that file, as the process sees it
  AddressRange loaded;        // where the image lies in memory, by the runtime's word; empty: it has none
  bool flat = true;           // there as in a file; else as the loader lays it out
  bool emitted = false;       // Reflection.Emit: its metadata grows
  uint64_t copied_bytes = 0;  // of metadata that is in no file
  std::string trouble;        // why there are no tables
};

// The file that is mapped at an address, from that byte on; nullopt: no file there.
struct MappedContent {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep_alive;
  std::string path = {};  // of the file, as the process sees it
};
using MappedContentFinder = std::function<std::optional<MappedContent>(uint64_t address)>;

// Copies of metadata, shared by all processes that hold the same bytes: a compressed bundle's framework has 10 MB.
class MetadataCopies {
 public:
  std::shared_ptr<const std::vector<std::byte>> Share(std::vector<std::byte> bytes);
  size_t heap_bytes() const;  // of copies in use

 private:
  absl::flat_hash_map<uint64_t, std::weak_ptr<const std::vector<std::byte>>> by_hash_;
};

// One process. Main loop only.
class RuntimeModules {
 public:
  // Borrows `layout`, `memory` and `copies`. `runtime`: where the runtime's image is mapped.
  RuntimeModules(const RuntimeLayout& layout, AddressRange runtime, MemoryReader& memory, MappedContentFinder files,
                 MetadataCopies& copies)
      : layout_(layout), runtime_(runtime), memory_(memory), files_(std::move(files)), copies_(copies) {}

  // The module whose object is at `address`. nullptr with a failed probe: there is none. `transient`: it may be freed
  // while the process runs, so that another may get its address; it is kept until the next call of ForgetTransient.
  // Shared: a caller in the middle of a name keeps the module that it has when a type argument has it read anew.
  std::shared_ptr<const RuntimeModule> At(MemoryProbe& probe, uint64_t address, bool transient);
  // The same, its metadata read anew: for rows that were not there before.
  std::shared_ptr<const RuntimeModule> Reload(MemoryProbe& probe, uint64_t address, bool transient);
  void ForgetTransient() {
    if (!transient_.empty()) forgotten_.swap(transient_);
    transient_.clear();
    transient_held_bytes_ = 0;
  }

  size_t size() const { return permanent_.size(); }
  uint64_t copied() const { return copied_; }  // modules whose metadata was copied

 private:
  using ModuleMap = absl::flat_hash_map<uint64_t, std::shared_ptr<const RuntimeModule>>;
  static constexpr size_t kMaxModules = 65536;
  // The size of all copies that are held for one process; a compressed bundle's framework has 10 MB.
  static constexpr uint64_t kMaxCopiedBytes = uint64_t{128} << 20;

  std::unique_ptr<RuntimeModule> Load(MemoryProbe& probe, uint64_t address, bool transient);
  absl::Status LoadImage(uint64_t base, bool flat, bool transient, RuntimeModule& module);
  uint32_t EmittedBytes(uint64_t address);  // of the copy that the runtime keeps
  // Fails the probe where the copy is replaced meanwhile.
  absl::Status LoadEmitted(MemoryProbe& probe, uint64_t address, RuntimeModule& module);
  absl::Status Take(std::vector<std::byte> metadata, RuntimeModule& module);

  const RuntimeLayout& layout_;
  AddressRange runtime_;
  MemoryReader& memory_;
  MappedContentFinder files_;
  MetadataCopies& copies_;
  ModuleMap permanent_, transient_;
  ModuleMap forgotten_;  // what was transient; good again where the same metadata still stands
  uint64_t copied_ = 0;
  uint64_t held_bytes_ = 0;  // of permanent copies
  uint64_t transient_held_bytes_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_RUNTIME_MODULES_H_
