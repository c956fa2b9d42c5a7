// The findings of doctor about one process. Pure: facts in, findings out.
#ifndef CLRSAMPLER_INSPECT_PROCESS_CHECKS_H_
#define CLRSAMPLER_INSPECT_PROCESS_CHECKS_H_

#include "inspect/finding.h"
#include "inspect/process_facts.h"

namespace clrsampler {

// A failing one: managed code of this process will have no names, or the process can't be looked at. A process without
// a .NET runtime gives one line, and no failure: native code is profiled all the same.
Findings CheckProcess(const ProcessFacts& facts);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_PROCESS_CHECKS_H_
