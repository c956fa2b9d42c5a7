// A recording of events of a runtime in short: how many, of which types, and in which methods.
#ifndef CLRSAMPLER_OUTPUT_EVENT_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_EVENT_SUMMARY_H_

#include <cstddef>
#include <string>

#include "formats/profile/profile_model.h"
#include "profile/account.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"

namespace clrsampler {

// The text of a view that is made of events: kAllocations, kExceptions, kContention. Each line ends in a newline. At
// most `rows` types and methods; names are made printable.
std::string EventSummaryText(ProfileView view, const FrameTable& frames, const StackTable& stacks,
                             const Account& account, size_t rows);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_EVENT_SUMMARY_H_
