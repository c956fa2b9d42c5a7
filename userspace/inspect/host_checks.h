// The findings of doctor about the host. Pure: facts in, findings out.
#ifndef CLRSAMPLER_INSPECT_HOST_CHECKS_H_
#define CLRSAMPLER_INSPECT_HOST_CHECKS_H_

#include "inspect/finding.h"
#include "inspect/host_facts.h"

namespace clrsampler {

// A failing one: no recording can start here, as this user.
Findings CheckHost(const HostFacts& facts);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_HOST_CHECKS_H_
