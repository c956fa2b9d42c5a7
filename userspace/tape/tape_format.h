// The bytes of a saved stream (docs/contributing/debugging.md says how to make and play one). Pure.
//
//   "CLRSTRM1"                 8 bytes; another version is refused
//   zstd frames or, after 'r', plain records: one byte 'z' or 'r' tells which
//
// Records: a byte of kind, then little-endian numbers and texts with a 64-bit length before them.
//
//   'R' run       text: the options of the run, as JSON
//   'Q' question  text; questions are numbered from 0 in this order
//   'A' answer    u32 question, u32 how often it was asked before in this iteration, text
//   'T' iteration      the next iteration of the main loop begins
//   'F' file      u64 device, inode, size, time of change in ns; files are numbered from 0
//   'P' pages     u32 file, u64 offset, text: content of the file there
//   'E' end       of a run that ended well
//
// An answer holds until the next one to the same question: only changes are written.
#ifndef CLRSAMPLER_TAPE_TAPE_FORMAT_H_
#define CLRSAMPLER_TAPE_TAPE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/tape.h"

namespace clrsampler {

inline constexpr absl::string_view kTapeMagic = "CLRSTRM1";

// The most that a tape may hold, in bytes as they are in memory. A minute of a busy .NET process has some 30 MB.
inline constexpr uint64_t kMaxTapeBytes = uint64_t{2} << 30;

struct TapeAnswer {
  uint32_t iteration = 0;
  uint32_t asked_before = 0;  // in that iteration
  absl::string_view bytes;
};

struct TapeQuestion {
  absl::string_view text;
  std::vector<TapeAnswer> answers;  // in order
};

struct TapeFile {
  FileOnTape file;
  std::vector<std::pair<uint64_t, absl::string_view>> pages;  // offset, content
};

// Views into the bytes it was parsed from.
struct TapeContent {
  absl::string_view run;
  std::vector<TapeQuestion> questions;
  std::vector<TapeFile> files;
  uint32_t iterations = 0;
  bool whole = false;  // to the record of its end
};

// The content before the first damage, `whole` false then. `records`: what follows the magic and the byte behind it.
TapeContent ParseTape(absl::string_view records);

// The records of a saved stream, unpacked. DataLoss: not one, or damaged; ResourceExhausted: more than `max_bytes`.
absl::StatusOr<std::string> UnpackTape(absl::string_view bytes, uint64_t max_bytes = kMaxTapeBytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_TAPE_TAPE_FORMAT_H_
