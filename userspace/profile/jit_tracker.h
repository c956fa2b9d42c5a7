// The work of a process's JIT compiler: calls of compileMethod and their ends, put together to compilations. Pure:
// events in, compilations out.
//
// They nest on one thread: what the compiler asks of the runtime may run managed code that has to be compiled first.
// One that ends in an exception has no end; it is known by what the thread does next: the stack pointer of each call
// lies below those of the calls around it.
#ifndef CLRSAMPLER_PROFILE_JIT_TRACKER_H_
#define CLRSAMPLER_PROFILE_JIT_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "os/clock.h"
#include "symbols/frame.h"
#include "symbols/source_place.h"

namespace clrsampler {

struct Compilation {
  MonotonicTime began;
  MonotonicTime done;
  uint64_t inner_ns = 0;  // of it: other compilations, on the same thread
  uint32_t tid = 0;
  std::string comm;     // of the thread
  uint64_t method = 0;  // address of its MethodDesc; 0: not known, as with the other fields
  uint64_t entry = 0;   // of the code
  uint64_t flags = 0;   // clr/hooks/jit_flags.h
  uint32_t bytes = 0;   // of the code
  uint32_t il_bytes = 0;
  uint32_t result = 0;       // 0: compiled
  std::string dynamic_name;  // of a dynamic method: what it was called at that moment

  uint64_t duration_ns() const { return done.ns - began.ns; }
  uint64_t own_ns() const { return duration_ns() - inner_ns; }
};

struct NamedCompilation {
  uint32_t tgid = 0;
  Compilation compilation;
  std::string method;  // "[...]" where it has no name
  std::string module;  // simple name of its assembly; empty: not known
  std::string tier;    // "OptimizedTier1", as the runtime's perf map says it
  bool il_stub = false;
  NameSource source = NameSource::kNone;
  SourcePlace place;  // where the method begins, if lines are wanted
  // The methods that it was compiled for, the nearest first; "[thread .NET Tiered Com]" where it was for none. Empty:
  // its stack was not taken.
  std::vector<std::string> callers;
};

struct JitCounters {
  uint64_t compilations = 0;
  uint64_t refused = 0;     // of these: the compiler said no
  uint64_t unfinished = 0;  // ended by an exception, or with the process
  uint64_t cut = 0;         // began before watching did, or went on after it ended
  uint64_t by_stack = 0;    // of `compilations`: their beginning is what the stack said (jit_start.h)
};

// One process. Events of a thread in the order of their times.
class JitTracker {
 public:
  void Begin(uint32_t tid, MonotonicTime time, uint64_t method_info, uint64_t method, uint64_t stack_pointer);
  // `method_info`, which is an address on the stack, and `done.method` are those of its beginning. Sets began and
  // inner_ns. `start` is what counts where its beginning was not seen; nullopt there: nothing is known of it.
  std::optional<Compilation> End(uint64_t method_info, Compilation done,
                                 std::optional<MonotonicTime> start = std::nullopt);
  // When the compilation that ends now was seen to begin.
  std::optional<MonotonicTime> BeginningOf(uint32_t tid, uint64_t method_info, uint64_t method) const;
  // Events are missing from here on: what is under way may have ended.
  void Cut();
  // The process has ended.
  void Finish();

  const JitCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kMaxThreads = 4096;  // that compile at one time; a hostile process can't make it more
  static constexpr size_t kMaxNested = 64;

  struct Open {
    MonotonicTime began;
    uint64_t method_info;
    uint64_t method;
    uint64_t stack_pointer;
  };
  // One that has ended, and may have been inside another whose end is to come. Where there are many, the first are one.
  struct Ended {
    MonotonicTime began;
    uint64_t duration_ns;
  };
  struct Thread {
    std::vector<Open> open;    // outermost first
    std::vector<Ended> ended;  // in the order of their beginnings
  };
  absl::flat_hash_map<uint32_t, Thread> threads_;
  JitCounters counters_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_JIT_TRACKER_H_
