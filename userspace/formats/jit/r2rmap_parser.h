// r2rmap files (NAME.ni.r2rmap, crossgen2 --perfmap --perfmap-format-version:1): text -> header and rows. Pure.
//
// Format: dotnet/runtime:docs/design/coreclr/botr/r2r-perfmap-format.md, version 1; writer:
// dotnet/runtime:src/coreclr/tools/aot/ILCompiler.Diagnostics/PerfMapWriter.cs ("{rva:X8} {length:X2} {name}"; the
// specification says two bytes of length, the writer knows no such limit, and neither do we).
//
// A compiler writes the file once and whole. So any line that does not fit makes the file unusable: a file that was cut
// or mixed up could give a method's addresses to its neighbour. Whether the map fits an image is not decided here.
#ifndef CLRSAMPLER_FORMATS_JIT_R2RMAP_PARSER_H_
#define CLRSAMPLER_FORMATS_JIT_R2RMAP_PARSER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// PerfMapOSToken, PerfMapArchitectureToken and PerfMapAbiToken. Other values are kept as they stand in the file.
enum class R2rMapOs : uint32_t { kUnknown, kWindows, kLinux, kOsx, kFreeBsd, kNetBsd, kSunOs };
enum class R2rMapArchitecture : uint32_t { kUnknown, kArm, kArm64, kX64, kX86, kRiscV64, kLoongArch64 };
enum class R2rMapAbi : uint32_t { kUnknown, kDefault, kArmel };

struct R2rMapHeader {
  std::array<uint8_t, 16> signature{};  // in the order of its text, which is the order of the bytes in the image
  uint32_t version = 0;
  R2rMapOs os = R2rMapOs::kUnknown;
  R2rMapArchitecture architecture = R2rMapArchitecture::kUnknown;
  R2rMapAbi abi = R2rMapAbi::kUnknown;
};

struct R2rMapRow {
  uint32_t rva = 0;
  uint32_t length = 0;     // bytes
  absl::string_view name;  // in the text that was parsed
};

struct R2rMap {
  R2rMapHeader header;
  std::vector<R2rMapRow> rows;  // in file order; a method has several when it was split into hot and cold code
};

constexpr uint32_t kR2rMapVersion = 1;
constexpr size_t kMaxR2rMapNameBytes = 1 << 20;
// The composite framework has 200,245 rows (.NET 10.0.12). A row in memory has four times the bytes of the shortest row
// in a file.
constexpr size_t kMaxR2rMapRows = 4'000'000;

// The rows borrow `text`, which must outlive them. Errors name the line: kUnimplemented for another version,
// kResourceExhausted for the row behind `max_rows`, kDataLoss for everything else.
absl::StatusOr<R2rMap> ParseR2rMap(absl::string_view text, size_t max_rows = kMaxR2rMapRows);
// The header alone, with the same errors: it may tell that the map is of no use, and rows take time and memory.
absl::StatusOr<R2rMapHeader> ParseR2rMapHeader(absl::string_view text);

// Words for people: "Linux", "X64"; a number for a value without a word.
std::string R2rMapOsText(R2rMapOs os);
std::string R2rMapArchitectureText(R2rMapArchitecture architecture);
std::string R2rMapAbiText(R2rMapAbi abi);
std::string R2rMapSignatureText(const R2rMapHeader& header);  // 32 upper-case digits, as in the file

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_JIT_R2RMAP_PARSER_H_
