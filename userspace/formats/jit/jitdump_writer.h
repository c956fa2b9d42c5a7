// Writes jitdump records into a byte string: for tests, for programs that generate code and want to be profiled, and
// for export. The counterpart of jitdump_parser.h, which names the specification.
//
// Appends only; the caller takes bytes() and writes them wherever it likes, record by record if it wants.
#ifndef CLRSAMPLER_FORMATS_JIT_JITDUMP_WRITER_H_
#define CLRSAMPLER_FORMATS_JIT_JITDUMP_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "formats/jit/jitdump_parser.h"

namespace clrsampler {

class JitdumpWriter {
 public:
  explicit JitdumpWriter(bool big_endian = false) : swap_(big_endian) {}

  // `extension` stands between the 40 known bytes and the first record. header_bytes and big_endian of `header` are
  // ignored.
  void Header(const JitdumpHeader& header, absl::string_view extension = "");

  // name, time stamp, addresses and so on from `load`; its offsets and body_bytes are ignored. `code` is the body.
  void Load(const JitdumpLoad& load, std::span<const std::byte> code);
  // The same with the few fields that matter: vma and code_address are `address`.
  void Load(absl::string_view name, uint64_t timestamp, uint64_t address, std::span<const std::byte> code);

  void Move(const JitdumpMove& move);
  void DebugInfo(const JitdumpDebugInfo& info);
  void Unwinding(uint64_t timestamp, uint64_t eh_frame_header_size, uint64_t mapped_size,
                 std::span<const std::byte> data);
  void Close(uint64_t timestamp);
  void Unknown(uint32_t id, uint64_t timestamp, std::span<const std::byte> payload);

  const std::string& bytes() const { return bytes_; }
  // And begins anew behind them.
  std::string TakeBytes() { return std::exchange(bytes_, {}); }

 private:
  void U32(uint32_t value);
  void U64(uint64_t value);
  void Text(absl::string_view text);  // with its NUL
  void Raw(std::span<const std::byte> raw);
  void Prefix(uint32_t id, uint64_t payload_bytes, uint64_t timestamp);

  bool swap_;
  uint32_t pid_ = 0;
  uint64_t next_index_ = 1;
  std::string bytes_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_JIT_JITDUMP_WRITER_H_
