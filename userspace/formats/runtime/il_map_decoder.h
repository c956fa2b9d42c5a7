// Reads the IL map out of the debug information that the runtime keeps of a compiled body.
//
// Source: dotnet/runtime src/coreclr/vm/debuginfostore.{h,cpp} (8.0 to 10.0) and
// docs/design/datacontracts/DebugInfo.md (11.0). The writer of crossgen2 uses the same forms
// (src/coreclr/tools/aot/ILCompiler.ReadyToRun/Compiler/DependencyAnalysis/ReadyToRun/DebugInfoTableNode.cs).
// Variables, patchpoints and rich debug information are stepped over.
//
// The debug information of a JIT body lies in another process, so it is read in two steps: its head says where the map
// is, then the bytes of the map are decoded. Pure: no step reads, and none keeps what it was given.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_IL_MAP_DECODER_H_
#define CLRSAMPLER_FORMATS_RUNTIME_IL_MAP_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "formats/runtime/il_map.h"

namespace clrsampler {

enum class DebugInfoFormat : uint8_t {
  kNet8,   // .NET 8 and 9; R2R images below 16
  kNet10,  // .NET 10; R2R images of 16
  kNet11,  // .NET 11; R2R images from 17 on
};

// A part of the head of debug information.
enum class DebugInfoPart : uint8_t {
  kStart,  // of what a JIT body has
  kRich,   // the size of rich debug information
  kSizes,  // the sizes of the chunks; R2R images have nothing before them
};

// A place in debug information where a part of its head begins.
struct DebugInfoPlace {
  DebugInfoPart part = DebugInfoPart::kStart;
  uint64_t offset = 0;          // bytes from the start of the debug information
  bool has_patchpoint = false;  // a part before it was that of a patchpoint
};

// Enough for any part, if that many bytes can be read there.
constexpr size_t kDebugInfoHeadBytes = 64;
// The largest map that is read.
constexpr uint32_t kMaxBoundsBytes = 256 * 1024;

struct DebugInfoHeader {
  // Set: the head goes on there, behind what the bytes given hold; nothing else is known. Read kDebugInfoHeadBytes
  // there and ask again from that place. That happens twice at most.
  std::optional<DebugInfoPlace> needs_more_at;
  // The bytes that DecodeBounds takes, from the start of the debug information. None: the body has no map.
  uint64_t bounds_offset = 0;
  uint32_t bounds_bytes = 0;
  // The body can be replaced while it runs, at a patchpoint. Only code that is not optimised has those, one for each
  // loop.
  bool has_patchpoint = false;
};

// `bytes` are those at `from.offset` of the debug information, as many of kDebugInfoHeadBytes as can be read. Where a
// profiler has changed a method, the header leads to the map of its original instructions; .NET 8 and 9 have none.
// DataLoss: damaged, cut off, or a map larger than kMaxBoundsBytes.
absl::StatusOr<DebugInfoHeader> ReadDebugInfoHeader(DebugInfoFormat format, std::span<const std::byte> bytes,
                                                    DebugInfoPlace from = {});

// The map of a body of `code_bytes`, funclets included. No bytes: a map without entries. DataLoss: damaged, which
// includes bytes that are left over.
absl::StatusOr<IlMap> DecodeBounds(DebugInfoFormat format, std::span<const std::byte> bounds, uint32_t code_bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_IL_MAP_DECODER_H_
