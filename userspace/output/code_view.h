// A body of machine code as rows: instructions with their lines and samples. The part that texts and pages of code
// share.
#ifndef CLRSAMPLER_OUTPUT_CODE_VIEW_H_
#define CLRSAMPLER_OUTPUT_CODE_VIEW_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "disassembly/disassembler.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// A line of a file; 0, 0: none.
using CodePlace = std::pair<StringIndex, uint32_t>;

CodePlace PlaceAt(const ModelCode& code, uint32_t offset);

struct CodeRow {
  uint32_t offset = 0;
  std::string text;  // empty: not known
  CodePlace place;
  uint64_t samples = 0;
};

// `instructions`: all of the body; none: a row for each offset that has samples.
std::vector<CodeRow> CodeRows(const ModelCode& code, const std::vector<Instruction>& instructions);

uint64_t SamplesOf(const ModelCode& code);

// "OptimizedTier1, x86-64, 181 bytes at 7fea2c28b980 in process 4711"
std::string BodyText(const ProfileModel& model, const ModelCode& code);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_CODE_VIEW_H_
