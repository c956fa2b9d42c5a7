// A recording of waits in short: how long for what, in which methods, and which threads ended them.
#ifndef CLRSAMPLER_OUTPUT_WAIT_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_WAIT_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/account.h"
#include "profile/stack_table.h"
#include "profile/wait_kind.h"
#include "symbols/frame.h"

namespace clrsampler {

struct WaitSite {
  std::string kind;    // WaitKindText, or "running"
  std::string method;  // innermost of the program's own: not of the runtime's libraries, if there is one
  uint64_t microseconds = 0;
  std::string waker;     // thread and method that ended most of it; empty: not asked for, or nobody
  bool managed = false;  // the method is
};

struct WaitSummary {
  uint64_t waited_us = 0;       // all kinds but running
  uint64_t running_us = 0;      // in a recording of wall time
  std::vector<WaitSite> kinds;  // longest first; method is empty
  std::vector<WaitSite> sites;  // longest first, without those that wait for work to come
};

// Takes stacks as recordings of waits have them: a mark of the kind behind the functions, and a mark of the waker
// behind that. `only`: sites of these kinds alone; empty: all.
WaitSummary SummarizeWaits(const FrameTable& frames, const StackTable& stacks, const std::vector<WaitKind>& only = {});

// Each line ends in a newline. At most `rows` sites; names are made printable.
std::string WaitSummaryText(const WaitSummary& summary, const Account& account, size_t rows);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_WAIT_SUMMARY_H_
