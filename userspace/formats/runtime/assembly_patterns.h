// The instructions of functions in assembly, as texts: which instructions stand there, and which functions they lead
// to.
//
// A pattern is a list of words with a blank between them.
//   end         the function's end; without it anything may follow
// x64, whose words are bytes:
//   48          two hexadecimal digits: that byte
//   ..          any byte
//   @NAME       a distance of four bytes to the function NAME
//   xmm         the stores of eight argument registers
//   tls         the address of a variable of the thread
// arm64, whose words are instructions:
//   d65f03c0    eight hexadecimal digits: that instruction
//   94000000@NAME   the same, but for its distance, which leads to the function NAME; without a name: to any place
//   x12=        the address of a variable, put into x12: adrp and add, or as a linker shortens it, nop and adr
//   tlsdesc     the address of a variable of the thread: four instructions, by descriptor or as a linker shortens it
#ifndef CLRSAMPLER_FORMATS_RUNTIME_ASSEMBLY_PATTERNS_H_
#define CLRSAMPLER_FORMATS_RUNTIME_ASSEMBLY_PATTERNS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

struct AssemblyPattern {
  absl::string_view name;
  std::string words;
};

// A name may have several patterns: one of each version that differs.
std::vector<AssemblyPattern> X64AssemblyPatterns();
std::vector<AssemblyPattern> Arm64AssemblyPatterns();

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_ASSEMBLY_PATTERNS_H_
