// The identity of a process. A pid alone is not enough: pids are reused while samples and files of the former owner are
// still here.
#ifndef CLRSAMPLER_PROCESS_PROCESS_KEY_H_
#define CLRSAMPLER_PROCESS_PROCESS_KEY_H_

#include <cstdint>

namespace clrsampler {

struct ProcessKey {
  uint32_t tgid = 0;         // as our own pid namespace numbers it
  uint32_t incarnation = 0;  // counts up over the run; no two processes share it. Not changed by exec.

  friend bool operator==(ProcessKey, ProcessKey) = default;
  template <typename H>
  friend H AbslHashValue(H h, ProcessKey key) {
    return H::combine(std::move(h), key.tgid, key.incarnation);
  }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_PROCESS_KEY_H_
