// CFI rows of x86-64 code that has no unwind data, made from the instructions themselves.
//
// musl's libc.so is such code: its build leaves unwind tables and frame pointers out. A function is followed from its
// first instruction, where the return address is on top of the stack, along all its paths; each instruction adds what
// it does to sp and rbp. The result is believed only where it is proved:
//  - all paths to an instruction say the same of it;
//  - each path out of the function, a `ret` or a jump to another function, leaves sp where it was, and rbp the
//  caller's.
// One contradiction, or one instruction that is not known, and no instruction of the function has a row.
//
// Where functions begin is known of symbols, of what is called, and of addresses that code or data hold, if nothing
// leads there from above. A call that no path returns from (exit) ends a path; what lies behind it is not followed.
//
// A thread begins in code that takes its return address off the stack and never returns (musl: __clone). Such code is
// the outermost frame, and its row says so.
//
// glibc, libstdc++ and the runtimes have tables of their own, which are the truth.
// tests/unit/formats/elf/code_rows_test.cc says how much of them gets a row, and that no row is wrong.
#ifndef CLRSAMPLER_FORMATS_ELF_CODE_ROWS_H_
#define CLRSAMPLER_FORMATS_ELF_CODE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/elf/cfi_rows.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// In force for [start, end).
struct CodeRow {
  VirtualAddress start;
  VirtualAddress end;
  CfiRow row;
};

// A function from its first instruction on, as far as its code has no gaps.
struct CodeFunction {
  VirtualAddress start;
  VirtualAddress end;
};

struct CodeRows {
  // Images with more code get no rows. musl has 0.4 MB.
  static constexpr uint64_t kMaxCodeBytes = 2 << 20;

  std::vector<CodeRow> rows;  // by start, without overlaps
  // Likewise. Left out are functions that share code with others, or whose beginning is not sure.
  std::vector<CodeFunction> bounds;
  uint64_t code_bytes = 0;  // of the image's executable sections
  uint64_t row_bytes = 0;   // of them with a row
  size_t functions = 0;     // that were followed
  size_t refused = 0;       // of them: contradictions
};

// kNotFound: the image has no code, or no function is known. kUnimplemented: not x86-64. kResourceExhausted: too much
// code. kDataLoss: sections of code overlap. Takes 0.13 s for musl's libc and, while it runs, 14 bytes for each byte of
// code: 6 MB. Each byte is followed 32 times at most in each of six passes, whatever the code is.
absl::StatusOr<CodeRows> RowsOfCode(const ElfImage& image);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_CODE_ROWS_H_
