// Tells which lock a thread waits for now, and which thread holds it: monitors (`lock` of an ordinary object), and
// System.Threading.Lock.
//
// Up to .NET 10 the runtime says of each thread which monitor it enters: Thread -> DebugBlockingItem on the thread's
// stack -> AwareLock. Since .NET 11 monitors are System.Threading.Lock objects, and like every use of these nothing
// says which one a thread waits for. The frames of Lock.TryEnterSlow and of what it calls hold its address all the
// time, so it is the one Lock among their words that the thread itself does not hold. If there are several, none is
// told: which of them was left just now says nothing.
//
// An object whose header has a thin lock is not looked for: a thread that waits gives it a sync block first.
#ifndef CLRSAMPLER_CLR_MEMORY_MONITOR_READER_H_
#define CLRSAMPLER_CLR_MEMORY_MONITOR_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "clr/memory/corelib_fields.h"
#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_memory.h"
#include "clr/memory/runtime_threads.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct LockWait {
  uint64_t lock = 0;       // AwareLock or Lock: the same as long as the object lives and is not moved
  uint64_t object = 0;     // whose monitor it is, or the Lock itself; 0: not known. It may be moved at any time
  std::string type;        // of the object, in the runtime's notation; empty: not known
  bool held = false;       // by anybody, when it was read
  uint32_t owner_tid = 0;  // in the innermost pid namespace; 0: nobody, or a thread that the runtime does not list
  uint32_t entered = 0;    // how often the owner has entered it
  bool limited = false;    // the thread gives up after some time
  bool changing = false;   // it is held, and its owner is just being written: to be read again

  friend bool operator==(const LockWait&, const LockWait&) = default;
};

// The stack of a thread that waits, as addresses. It goes from the stack pointer up to the end of the frames of the
// runtime's own lock methods, and on to the end of the method that enters. Both empty: it is in none of these methods.
struct WaitFrames {
  AddressRange inner, outer;
  bool monitor = false;  // among them is a method of Monitor
  bool limited = false;  // the wait ends after some time, or it is not sure that it does not
};

// One process. Main loop only. Borrows the runtime.
class MonitorReader {
 public:
  explicit MonitorReader(RuntimeMemory& runtime) : runtime_(runtime), fields_(runtime) {}

  // Reads the list of threads; those that begin later wait for nothing until it is called again. An error says why it
  // is not known, or not all of it. Then a thread of which nothing is told may wait all the same.
  absl::Status Refresh();

  // nullopt: this thread waits for no lock, or it is not sure for which. Right for the moment of the call if the thread
  // stands still; else what it finds was there, and the caller has to see to it that the thread has not run meanwhile.
  std::optional<LockWait> WaitOf(uint32_t os_tid, const WaitFrames& frames);

 private:
  static constexpr uint64_t kMaxFrameBytes = 64 << 10;

  struct LockFields {
    uint64_t type = 0;
    uint32_t state = 0, owner = 0, recursion = 0, bytes = 0;
  };
  absl::Status ReadList();
  std::optional<LockWait> NativeWait(MemoryProbe& probe, const RuntimeThread& thread);
  std::optional<LockWait> ManagedWait(MemoryProbe& probe, const RuntimeThread& thread, const WaitFrames& frames);
  // The listed thread that has that number; 0: there is none, also in a list that was read anew.
  uint32_t TidOf(uint32_t owner, bool is_managed_id);
  std::optional<LockFields> FieldsOfLock(MemoryProbe& probe);
  // The sync block of an index, and the object that it belongs to; 0: it has none.
  uint64_t SyncTable(MemoryProbe& probe);
  uint64_t ObjectOf(MemoryProbe& probe, uint64_t sync_block, uint32_t index);
  uint64_t LockOfObject(MemoryProbe& probe, uint64_t object);
  std::vector<uint64_t> Words(AddressRange range);
  void Describe(uint64_t object, LockWait& wait);

  RuntimeMemory& runtime_;
  CoreLibFields fields_;
  absl::flat_hash_map<uint32_t, RuntimeThread> threads_;  // by os_id
  absl::flat_hash_set<uint32_t> looked_up_;               // owners for which the list was read anew
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_MONITOR_READER_H_
