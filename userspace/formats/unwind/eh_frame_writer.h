// .eh_frame and .eh_frame_hdr of a body of machine code (LSB 5.0, "Exception Frames"), for readers of jitdumps.
//
// Both are one run of bytes that is thought to lie behind the code, from the next address on that is a multiple of 8:
// so do `perf inject --jit` and V8 place them (linux:tools/perf/util/genelf.c). They read .eh_frame first and the
// header behind it, where the specification of jitdumps has them the other way round. Addresses are relative, so that
// it does not matter where the code is. Pure.
#ifndef CLRSAMPLER_FORMATS_UNWIND_EH_FRAME_WRITER_H_
#define CLRSAMPLER_FORMATS_UNWIND_EH_FRAME_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/unwind/frame_steps.h"

namespace clrsampler {

enum class FrameMachine : uint8_t { kX64, kArm64 };

// A part of the code with steps of its own: a method, or a funclet.
struct FrameFunction {
  uint32_t begin = 0;  // from the first byte of the code
  uint32_t end = 0;    // exclusive
  std::vector<FrameStep> steps;
};

struct EhFrame {
  std::string bytes;        // .eh_frame, and behind it .eh_frame_hdr
  size_t header_bytes = 0;  // of the latter
};

// Readers of the table read it in memory (libunwind), readers without one read all entries in the file (libdw). The
// header of a table that is left out says so, and keeps the length that readers take it to have.
enum class SearchTable : uint8_t { kWritten, kLeftOut };

// `functions` ascend and do not overlap. InvalidArgument: they do, one is empty, or its steps do not fit: they lie
// behind its end, or a register is saved where no word is.
absl::StatusOr<EhFrame> WriteEhFrame(FrameMachine machine, uint32_t code_bytes,
                                     std::span<const FrameFunction> functions,
                                     SearchTable table = SearchTable::kWritten);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_UNWIND_EH_FRAME_WRITER_H_
