// The capabilities of the calling thread, reduced for good.
#ifndef CLRSAMPLER_SANDBOX_CAPABILITIES_H_
#define CLRSAMPLER_SANDBOX_CAPABILITIES_H_

#include <span>

#include "absl/status/status.h"

namespace clrsampler {

bool HasCapability(int capability);

// No others but these come back: not by exec, not by a change of the user. Without CAP_SETPCAP no_new_privs alone sees
// to that.
void ForbidGaining(std::span<const int> kept);

// These of the thread's capabilities stay.
absl::Status KeepCapabilities(std::span<const int> kept);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SANDBOX_CAPABILITIES_H_
