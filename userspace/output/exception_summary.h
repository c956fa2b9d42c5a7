// A recording of exceptions by single ones: which stacks throw most.
#ifndef CLRSAMPLER_OUTPUT_EXCEPTION_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_EXCEPTION_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/account.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"

namespace clrsampler {

struct ThrowingStack {
  std::string type;
  uint64_t count = 0;
  std::vector<FrameId> frames;  // innermost first, without the type
};

// Takes stacks as a recording of exceptions has them, which end in the exception's type. Most exceptions first; those
// that are alike in their type and their innermost `frames` are one. At most `rows`.
std::vector<ThrowingStack> ThrowingStacks(const FrameTable& frames, const StackTable& stacks, size_t rows,
                                          size_t frames_each);

// How much of them was seen, what the rest rests on, and how many were thrown again: "all were seen; 3 were thrown
// again". Empty: the account has nothing of exceptions.
std::string SeenExceptionsText(const Account& account);

// The stacks as lines, with the lines of their methods where these are known; names are made printable.
std::string ThrowingStacksText(const FrameTable& frames, const std::vector<ThrowingStack>& stacks);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_EXCEPTION_SUMMARY_H_
