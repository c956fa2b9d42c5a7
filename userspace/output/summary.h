// The account of a run in words, for standard error.
#ifndef CLRSAMPLER_OUTPUT_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_SUMMARY_H_

#include <string>

#include "profile/account.h"

namespace clrsampler {

// At most a dozen lines, each ending in a newline, plus the notices.
std::string SummaryText(const Account& account);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_SUMMARY_H_
