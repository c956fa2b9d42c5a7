// Threads that are started while this lives get no signals: those are the main loop's.
#ifndef CLRSAMPLER_EXPORT_SIGNALS_BLOCKED_H_
#define CLRSAMPLER_EXPORT_SIGNALS_BLOCKED_H_

#include <pthread.h>
#include <signal.h>

namespace clrsampler {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_SIGNALS_BLOCKED_H_
