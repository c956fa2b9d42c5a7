// The runtime's functions that are written in assembly, told by their instructions.
//
// Managed code enters the runtime by them: to have a method compiled, to have a call of precompiled code resolved, to
// allocate. No table of the image names them. An assembler leaves no choice, so they are the same instructions in every
// build of a version, but for distances. A function has a name when its instructions are those of one pattern, no other
// function's are, and each function of a known name that it leads to is the same wherever it is met. That names the
// functions that they call, too.
//
// Sources and measured versions: formats/runtime/assembly_patterns_x64.cc and
// formats/runtime/assembly_patterns_arm64.cc.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_ASSEMBLY_FUNCTIONS_H_
#define CLRSAMPLER_FORMATS_RUNTIME_ASSEMBLY_FUNCTIONS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

struct AssemblyFunction {
  VirtualAddress start;    // where an entry of the unwind table begins
  absl::string_view name;  // lives for ever
};

// By address, each address and each name once. Any thread; 2 ms for libcoreclr.so.
std::vector<AssemblyFunction> FindAssemblyFunctions(const ElfImage& image, const EhFrameTable& unwind);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_ASSEMBLY_FUNCTIONS_H_
