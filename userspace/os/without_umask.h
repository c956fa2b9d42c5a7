// Modes that are right from the beginning: a name may have changed hands before a chmod of it.
#ifndef CLRSAMPLER_OS_WITHOUT_UMASK_H_
#define CLRSAMPLER_OS_WITHOUT_UMASK_H_

#include <sys/stat.h>
#include <sys/types.h>

namespace clrsampler {

// Files that are made while it lives have the mode that was asked for. The umask is one for all threads: no other one
// may make files meanwhile.
class WithoutUmask {
 public:
  WithoutUmask() : before_(umask(0)) {}
  ~WithoutUmask() { umask(before_); }
  WithoutUmask(const WithoutUmask&) = delete;
  WithoutUmask& operator=(const WithoutUmask&) = delete;

 private:
  mode_t before_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_WITHOUT_UMASK_H_
