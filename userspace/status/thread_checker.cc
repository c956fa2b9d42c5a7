#include "status/thread_checker.h"

#ifndef NDEBUG
#include <cstdio>
#include <cstdlib>

namespace clrsampler {

void ThreadChecker::Check(const char* file, int line, const char* function) const {
  std::thread::id first;
  const std::thread::id own = std::this_thread::get_id();
  if (thread_.compare_exchange_strong(first, own) || first == own) return;
  std::fprintf(stderr, "%s:%d: %s was called on a second thread\n", file, line, function);
  std::abort();
}

}  // namespace clrsampler
#endif
