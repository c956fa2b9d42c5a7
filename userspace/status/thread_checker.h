// Holds an object to one thread, in builds with assertions. In others it is nothing.
#ifndef CLRSAMPLER_STATUS_THREAD_CHECKER_H_
#define CLRSAMPLER_STATUS_THREAD_CHECKER_H_

#ifndef NDEBUG
#include <atomic>
#include <thread>
#endif

namespace clrsampler {

// Each class of the main loop has one, and its public methods that change something call Check first. The first call
// says which thread it is. A copy, or an object that was moved to, belongs to no thread yet.
class ThreadChecker {
 public:
#ifdef NDEBUG
  void Check() const {}
#else
  ThreadChecker() = default;
  ThreadChecker(const ThreadChecker&) {}
  ThreadChecker& operator=(const ThreadChecker&) { return *this; }

  // Ends the program, with the place of the call, where another thread calls than before.
  void Check(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
             const char* function = __builtin_FUNCTION()) const;

 private:
  mutable std::atomic<std::thread::id> thread_;  // the default one: none yet
#endif
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STATUS_THREAD_CHECKER_H_
