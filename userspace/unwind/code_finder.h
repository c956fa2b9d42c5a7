// The facts about the code at an address that an unwinder must know. Implemented where runtimes and images are read.
#ifndef CLRSAMPLER_UNWIND_CODE_FINDER_H_
#define CLRSAMPLER_UNWIND_CODE_FINDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/elf/cfi_rows.h"
#include "formats/unwind/unwind_info.h"

namespace clrsampler {

// One function of managed code on x86-64: a method's body or one of its funclets. Immutable and shared.
struct ManagedFunction {
  uint64_t begin = 0;  // in the process
  uint64_t end = 0;    // exclusive
  // The start of the method, which is the same for its body, its funclets and what was split off: they are one frame.
  uint64_t method_begin = 0;
  UnwindInfo unwind;  // with that of the functions it is chained to behind it
  bool funclet = false;
  bool resumption_stub = false;  // calls its method, of which it is a part to those who read stacks
  bool osr = false;              // on-stack replacement: the frame of the method's first version lies above its own
  // The bytes of that frame, from the copy of the caller's rbp, where rbp points, to where rbp was saved first, less 8.
  // Also in the funclets of such a method.
  uint32_t osr_frame_bytes = 0;
  std::span<const std::byte> code;         // from `begin` on; empty: not known. For leaves in prologues and epilogues.
  std::shared_ptr<const void> keep_alive;  // what `code` lies in

  // On the heap for it, without `code`, which functions share.
  size_t heap_bytes() const {
    constexpr size_t kCountersOfSharedPtr = 16;
    const size_t inlined = UnwindInfo().codes.capacity();
    const size_t codes = unwind.codes.capacity() > inlined ? unwind.codes.capacity() * sizeof(UnwindCode) : 0;
    return sizeof *this + kCountersOfSharedPtr + codes;
  }
};

enum class CodeKind : uint8_t {
  kUnknown,  // no code is known there
  kManaged,  // `managed`; nullptr on arm64, where managed code keeps frame records
  kNative,   // `row` where has_row; else an image without a row for the address
  kStub,     // of the runtime: a few instructions, no frame; has_row: but words on the stack, `row`
  // The first byte of what the runtime puts in the place of return addresses of threads that it wants to stop
  // (OnHijackTripThread, RhpGcProbeHijack). Nothing calls it, and where it returns to only the runtime knows.
  kReturnTrap,
};

// Kept by address for each process: the flags are together, and what is asked for seldom comes last.
struct CodeAt {
  CodeKind kind = CodeKind::kUnknown;
  bool mapped = true;  // false: no executable memory is known there
  // A kUnknown that was compiled by a runtime that leaves frame pointers out where it can, so that the chain skips
  // callers.
  bool omits_frames = false;
  bool has_row = false;
  // A native image with unwind data that has no row here: PLT entries and other code without a frame.
  bool between_rows = false;
  // Native code where no instruction that calls ends behind this address, so that nothing returns to there.
  bool no_call = false;
  // Compiled code that is never freed nor replaced: holds until the process calls exec.
  bool permanent = false;
  bool has_leaf_row = false;
  std::shared_ptr<const ManagedFunction> managed;
  CfiRow row;
  // Where such an instruction says what it calls: how far from its end that lies. 0: not known.
  int32_t call_distance = 0;
  // In the place of `row` for a frame that was interrupted at this very address, and did not call from here: in an
  // epilogue that the image's tables leave out.
  CfiRow leaf_row;
  bool unavailable = false;  // its image can't be read at the moment; the same question may have another answer later
  // Managed code on arm64 has a row where the frame record is not in place, and this is set where it is not known
  // whether it is. Both are of use for a leaf only.
  bool may_have_no_record() const { return kind == CodeKind::kManaged && managed == nullptr && between_rows; }
};

// Bound to one process and time by its maker.
class CodeFinder {
 public:
  virtual ~CodeFinder() = default;
  // `address` is inside an instruction of the function: for callers the return address less one.
  virtual const CodeAt& At(uint64_t address) = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_CODE_FINDER_H_
