// The largest changes between two profiles as a table for the terminal.
#ifndef CLRSAMPLER_OUTPUT_DIFF_TEXT_H_
#define CLRSAMPLER_OUTPUT_DIFF_TEXT_H_

#include <cstddef>
#include <string>

#include "profile/model_diff.h"

namespace clrsampler {

// At most `rows` methods, and lines that say what is compared and what the marks mean.
std::string DiffText(const ProfileDiff& diff, size_t rows);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_DIFF_TEXT_H_
