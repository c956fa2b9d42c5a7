// The machine code of a profile as a page's data has it.
#ifndef CLRSAMPLER_OUTPUT_HTML_CODE_H_
#define CLRSAMPLER_OUTPUT_HTML_CODE_H_

#include <cstdint>
#include <span>

#include "formats/profile/profile_model.h"
#include "output/json_stream.h"

namespace clrsampler {

// Writes an array with an object for each body that has samples: "frame" (of the page), "what" it is in words, "files",
// and columns. These are offset, file (of these files, and one more; 0: none), line, self and text, with a row for each
// instruction. Without a disassembler there is a row for each place that has samples, and its text is "".
// `frames`: the page's frame of each entry of ProfileModel::code.
void WriteHtmlCode(const ProfileModel& model, std::span<const uint32_t> frames, JsonStream& json);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_HTML_CODE_H_
