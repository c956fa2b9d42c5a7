// Where the image itself says that functions begin.
#ifndef CLRSAMPLER_FORMATS_ELF_FUNCTION_STARTS_H_
#define CLRSAMPLER_FORMATS_ELF_FUNCTION_STARTS_H_

#include <vector>

#include "formats/elf/code_areas.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

struct FunctionStarts {
  std::vector<CodeIndex> symbols;   // by index, each once; without the entry
  std::vector<CodeIndex> pointers;  // places that data holds the address of: functions, or arms of switches
  CodeIndex entry = kNoCode;        // of the program
};

FunctionStarts FunctionStartsOf(const ElfImage& image, const CodeAreas& code);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_FUNCTION_STARTS_H_
