// The outer shell of a .NET assembly: PE headers, sections, CLI header, debug directory and the ReadyToRun header.
//
// Layouts: ECMA-335 partition II.25 (PE and CLI header), Microsoft's PE/COFF specification (sections, debug directory),
// and dotnet/runtime docs/design/coreclr/botr/readytorun-format.md (R2R header, perf-map debug entry).
//
// A PeImage is a view: it holds a span of the image's bytes, which must outlive it, and copies only the section table.
// The bytes may change while it is used (a mapped file): every value is bounds-checked after it was read. Any number of
// threads may read. Offsets are bytes from the start of the span; RVAs are the image's own addresses, 0 = header.
#ifndef CLRSAMPLER_FORMATS_PE_PE_IMAGE_H_
#define CLRSAMPLER_FORMATS_PE_PE_IMAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

enum class PeMachine : uint8_t { kOther, kX64, kArm64 };

// crossgen2 XORs the machine field with a value for the target OS, so that no other loader takes the image.
enum class PeOs : uint8_t { kWindowsOrAny, kLinux, kApple, kFreeBsd, kOther };

// Where the bytes of an RVA are.
enum class PeLayout : uint8_t {
  kFile,    // at file offsets, by the section table
  kLoaded,  // as the runtime lays the image out in memory: the offset is the RVA
};

struct PeSection {
  uint32_t rva = 0;
  uint32_t virtual_bytes = 0;
  uint32_t file_offset = 0;
  uint32_t file_bytes = 0;
  bool executable = false;
};

struct RvaRange {
  uint32_t rva = 0;
  uint32_t bytes = 0;
};

// Types of entries of the debug directory that are read.
constexpr uint32_t kCodeViewDebugEntryType = 2;
constexpr uint32_t kEmbeddedPdbDebugEntryType = 17;
constexpr uint32_t kPdbChecksumDebugEntryType = 19;
constexpr uint32_t kPerfMapDebugEntryType = 21;

// An entry of the debug directory.
struct PeDebugEntry {
  uint32_t type = 0;
  uint32_t stamp = 0;               // TimeDateStamp; a part of a hash in deterministic builds
  uint16_t minor = 0;               // of the version of the data
  std::span<const std::byte> data;  // of the image; empty: none, or not all of it lies inside
};

// The content of a perf-map entry: which r2rmap belongs to the image. An image can have several: recompiling an
// image keeps the entry of its input.
struct PerfMapDebugEntry {
  std::array<uint8_t, 16> signature = {};
  uint32_t version = 0;
  std::string file_name;  // "System.Linq.ni.r2rmap"; chosen by the file: use its last component only
};

// Section types of R2R (CORCOMPILE READYTORUN_SECTION_*) that are read here.
enum class R2rSectionType : uint32_t {
  kRuntimeFunctions = 102,
  kMethodDefEntryPoints = 103,
  kDebugInfo = 105,
  kDelayLoadMethodCallThunks = 106,
  kInstanceEntryPoints = 109,
  kManifestMetadata = 112,
  kComponentAssemblies = 115,
  kOwnerCompositeExecutable = 116,
  kManifestAssemblyMvids = 118,
  kHotColdMap = 120,
};

struct R2rSection {
  uint32_t type = 0;
  RvaRange range;
};

struct R2rCoreHeader {
  uint32_t flags = 0;
  std::vector<R2rSection> sections;

  const R2rSection* Find(R2rSectionType type) const;
};

struct R2rHeader {
  uint16_t major = 0;
  uint16_t minor = 0;
  R2rCoreHeader core;
};

class PeImage {
 public:
  // DataLoss: not a PE file, or one whose headers do not lie inside `file`.
  static absl::StatusOr<PeImage> Parse(std::span<const std::byte> file, PeLayout layout = PeLayout::kFile);

  std::span<const std::byte> file() const { return file_; }
  PeLayout layout() const { return layout_; }
  PeMachine machine() const { return machine_; }
  PeOs os() const { return os_; }
  const std::vector<PeSection>& sections() const { return sections_; }

  std::optional<uint64_t> OffsetOfRva(uint32_t rva) const;
  // nullopt: the offset belongs to no section (headers, padding).
  std::optional<uint32_t> RvaOfOffset(uint64_t offset) const;
  const PeSection* SectionOfRva(uint32_t rva) const;

  // The bytes of a range of RVAs; nullopt when they are not all in one section of the file.
  std::optional<std::span<const std::byte>> Bytes(RvaRange range) const;
  // Up to `most` bytes from an RVA on, fewer where the file ends; none where the RVA is in no section.
  std::span<const std::byte> BytesFrom(uint32_t rva, size_t most) const;

  RvaRange cli_header() const { return cli_; }                    // 0 bytes: none
  RvaRange debug_directory() const { return debug_; }             // 0 bytes: none
  std::optional<RvaRange> metadata() const { return metadata_; }  // nullopt: no CLI header
  const std::optional<R2rHeader>& r2r() const { return r2r_; }    // nullopt: IL only, or not .NET

  // A core header at an RVA: those of the components of a composite image.
  absl::StatusOr<R2rCoreHeader> CoreHeaderAt(uint32_t rva) const;

  // The first 64 at most, in their order. In an image as it is loaded an entry's data is at its RVA, which linkers may
  // leave out; compilers of .NET and crossgen2 write it.
  std::vector<PeDebugEntry> DebugEntries() const;
  std::vector<PerfMapDebugEntry> PerfMapEntries() const;

 private:
  absl::Status ParseSections(uint64_t offset, uint32_t count);
  absl::Status ParseCliHeader();
  uint64_t OffsetOf(const PeSection& section) const;
  uint32_t BytesIn(const PeSection& section) const;

  std::span<const std::byte> file_;
  PeLayout layout_ = PeLayout::kFile;
  PeMachine machine_ = PeMachine::kOther;
  PeOs os_ = PeOs::kOther;
  std::vector<PeSection> sections_;
  RvaRange cli_;
  RvaRange debug_;
  std::optional<RvaRange> metadata_;
  std::optional<R2rHeader> r2r_;
};

// True when `file` begins like a PE file; cheap, for sorting files.
bool LooksLikePe(std::span<const std::byte> file);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_PE_IMAGE_H_
