#ifndef CLRSAMPLER_PROCESS_OWN_VDSO_H_
#define CLRSAMPLER_PROCESS_OWN_VDSO_H_

#include <cstddef>
#include <vector>

namespace clrsampler {

// The vDSO belongs to the kernel, not to a process: ours has the bytes of everybody's (64-bit programs only). Empty:
// there is none.
std::vector<std::byte> OwnVdso();

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_OWN_VDSO_H_
