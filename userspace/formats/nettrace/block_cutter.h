// Cuts a stream of the form "nettrace" into its blocks, as the bytes come.
//
// The stream begins with "Nettrace", a u32 length and "!FastSerialization.1". Objects follow: the tags 5, 5, 1, then
// u32 version, u32 oldest reader that can read it, u32 length and text of the kind's name, the tag 6, the content, and
// the tag 6. The content of the kind Trace has 48 bytes. All others have a u32 size, zeros up to a multiple of four
// bytes from the stream's beginning, and that many bytes. The tag 1 in the place of an object ends the stream.
// Little-endian.
//
// Threads: one cutter belongs to one thread. Errors (DataLoss, Unimplemented for another version) are final: there is
// no mark by which the next block could be found.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_BLOCK_CUTTER_H_
#define CLRSAMPLER_FORMATS_NETTRACE_BLOCK_CUTTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace clrsampler {

enum class NettraceBlockKind : uint8_t { kTrace, kMetadata, kEvents, kStacks, kSequencePoint };

struct NettraceBlock {
  NettraceBlockKind kind{};
  std::span<const std::byte> content;  // valid until the next call of the cutter
};

// Runtimes fill blocks of 100 KiB. A sequence point has 12 bytes for each thread.
inline constexpr uint32_t kMaxNettraceBlockBytes = 4 << 20;

class BlockCutter {
 public:
  // Keeps what is not given out yet: at most one block and `bytes`, if Next is asked until it has nothing.
  void Add(std::span<const std::byte> bytes);

  // nullopt: more bytes are needed, or the stream has ended. Bytes behind the end are an error.
  absl::StatusOr<std::optional<NettraceBlock>> Next();

  bool ended() const { return ended_; }

 private:
  std::span<const std::byte> Rest() const;
  absl::StatusOr<std::optional<NettraceBlock>> NextObject();

  std::vector<std::byte> bytes_;
  size_t taken_ = 0;     // of `bytes_`
  uint64_t offset_ = 0;  // of the first of `bytes_` in the stream
  bool begun_ = false;
  bool ended_ = false;
  absl::Status error_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_BLOCK_CUTTER_H_
