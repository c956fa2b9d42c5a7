// Jitdump files: bytes -> records. Pure: no files, no clock, no logging.
//
// A jitdump is what a JIT compiler writes for profilers: a header, then records that are only ever appended. The file
// grows while it is read, so "not yet" is an ordinary answer: Feed takes what is whole and says how much it took.
//
// Format: linux:tools/perf/Documentation/jitdump-specification.txt (revision 2, 2016) and
// linux:tools/perf/util/jitdump.h (the "\xff" file name of debug entries stands only there). Read as .NET 8 to 10 write
// it (dotnet/runtime:src/coreclr/pal/src/misc/perfjitdump.cpp) and as other JITs do: both byte orders, longer headers,
// all five kinds of record, unknown kinds skipped.
//
// Threads: one parser belongs to one thread. Errors: a file has no mark to find the next record by, so an error is
// final and is returned again by every later call.
#ifndef CLRSAMPLER_FORMATS_JIT_JITDUMP_PARSER_H_
#define CLRSAMPLER_FORMATS_JIT_JITDUMP_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// Time stamps are in nanoseconds of the writer's CLOCK_MONOTONIC unless the header says `arch_timestamps`.
struct JitdumpHeader {
  uint32_t version = 0;
  uint32_t header_bytes = 0;
  uint32_t elf_machine = 0;
  uint32_t pid = 0;  // in the writer's own pid namespace
  uint64_t timestamp = 0;
  bool arch_timestamps = false;  // ticks of some processor clock: not comparable with samples
  bool big_endian = false;
};

struct JitdumpLoad {
  uint64_t timestamp = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t vma = 0;
  uint64_t code_address = 0;
  uint64_t code_size = 0;  // bytes of code in memory; says nothing about this file
  uint64_t code_index = 0;
  absl::string_view name;    // valid during the call only
  uint64_t name_offset = 0;  // in the file
  // The bytes between the name and the end of the record: the code, or nothing. The end is total_size and never
  // code_size: since dotnet/runtime#122274 (10.0.13) the records of stub blocks announce a code_size and carry no code.
  uint64_t body_offset = 0;
  uint64_t body_bytes = 0;
};

struct JitdumpMove {
  uint64_t timestamp = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t vma = 0;
  uint64_t old_code_address = 0;
  uint64_t new_code_address = 0;
  uint64_t code_size = 0;
  uint64_t code_index = 0;
};

struct JitdumpDebugEntry {
  uint64_t address = 0;
  uint32_t line = 0;
  uint32_t discriminator = 0;
  absl::string_view file;  // "\xff" has been replaced by the name of the entry before
};

struct JitdumpDebugInfo {
  uint64_t timestamp = 0;
  uint64_t code_address = 0;
  uint64_t announced_entries = 0;
  std::span<const JitdumpDebugEntry> entries;  // fewer than announced when the record ends early; valid during the call
};

struct JitdumpUnwinding {
  uint64_t timestamp = 0;
  uint64_t unwind_data_size = 0;
  uint64_t eh_frame_header_size = 0;
  uint64_t mapped_size = 0;
  uint64_t data_offset = 0;  // in the file
  uint64_t data_bytes = 0;   // what the record really holds
};

class JitdumpSink {
 public:
  virtual ~JitdumpSink() = default;
  virtual void OnHeader(const JitdumpHeader&) {}
  virtual void OnLoad(const JitdumpLoad&) = 0;
  virtual void OnMove(const JitdumpMove&) {}
  // Debug records are walked, and need to be whole in memory, only for a sink that says true.
  virtual bool WantsDebugInfo() const { return false; }
  virtual void OnDebugInfo(const JitdumpDebugInfo&) {}
  virtual void OnUnwinding(const JitdumpUnwinding&) {}
  virtual void OnClose(uint64_t /*timestamp*/) {}
  virtual void OnUnknown(uint32_t /*id*/, uint32_t /*total_size*/) {}
};

struct FeedResult {
  size_t used = 0;    // bytes taken from the front; the caller offers the rest again together with what arrives later
  uint64_t skip = 0;  // bytes that follow the used ones and need not be read. They may not be written yet, or never
};

class JitdumpParser {
 public:
  // The largest records seen from .NET are stub blocks of 64 KiB; the largest method bodies some MiB.
  static constexpr uint32_t kMaxRecordBytes = 64 << 20;
  static constexpr uint32_t kMaxHeaderBytes = 64 << 10;
  static constexpr uint32_t kMaxNameBytes = 64 << 10;

  // Takes whole records from the front of `bytes`. A load is reported as soon as its name is there, before its code is.
  // When nothing is used, the caller must offer more bytes at once: kMaxNameBytes + 56, or kMaxHeaderBytes, always get
  // on; kMaxRecordBytes for a sink that wants debug records.
  absl::StatusOr<FeedResult> Feed(std::span<const std::byte> bytes, JitdumpSink& sink);

  bool header_seen() const { return header_seen_; }
  uint64_t offset() const { return offset_; }  // in the file, of the first byte that has not been used or skipped

 private:
  struct Prefix {
    uint32_t id;
    uint32_t total_size;
    uint64_t timestamp;
  };
  enum class Step { kNeedMore, kTaken };

  absl::StatusOr<FeedResult> FeedRecords(std::span<const std::byte> bytes, JitdumpSink& sink);
  absl::StatusOr<Step> ParseHeader(std::span<const std::byte> bytes, JitdumpSink& sink, uint32_t& header_bytes);
  absl::Status JudgeSize(const Prefix& prefix, uint64_t at) const;
  absl::StatusOr<Step> ParseRecord(const Prefix& prefix, std::span<const std::byte> record, uint64_t at,
                                   JitdumpSink& sink);
  absl::StatusOr<Step> ParseLoad(const Prefix& prefix, std::span<const std::byte> record, uint64_t at,
                                 JitdumpSink& sink) const;
  Step ParseMove(const Prefix& prefix, std::span<const std::byte> record, JitdumpSink& sink) const;
  Step ParseDebugInfo(const Prefix& prefix, std::span<const std::byte> record, JitdumpSink& sink);
  Step ParseUnwinding(const Prefix& prefix, std::span<const std::byte> record, uint64_t at, JitdumpSink& sink) const;

  absl::Status error_;
  bool header_seen_ = false;
  bool swap_ = false;
  uint64_t offset_ = 0;
  std::vector<JitdumpDebugEntry> debug_entries_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_JIT_JITDUMP_PARSER_H_
