// A runtime and an agent for the profiler library, in this process: it is loaded and called as by a runtime, and what
// it writes into the ring comes back.
#ifndef CLRSAMPLER_TESTS_UNIT_INPROCESS_LIBRARY_HOST_H_
#define CLRSAMPLER_TESTS_UNIT_INPROCESS_LIBRARY_HOST_H_

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "clr/inprocess/shared_ring.h"
#include "formats/inprocess/ring_reader.h"
#include "inprocess/profiler_api.h"
#include "os/unique_fd.h"

namespace clrsampler {

// A table of an interface of the runtime, as an object of it begins. Functions that are not set fail.
class RuntimeTable {
 public:
  RuntimeTable();
  // The function takes the object first, and has the types of the declaration.
  template <typename Function>
  void Set(unsigned slot, Function* function) {
    table_[slot] = reinterpret_cast<void*>(function);
  }
  void* object() { return &begin_; }

 private:
  static constexpr size_t kSlots = 128;
  void* table_[kSlots];
  void* const* begin_ = table_;
};

// One at a time.
class LibraryHost {
 public:
  LibraryHost();
  ~LibraryHost();
  LibraryHost(const LibraryHost&) = delete;
  LibraryHost& operator=(const LibraryHost&) = delete;

  // ICorProfilerInfo12, to be filled before Attach. Masks are taken, and each request to be unloaded is
  // `detach_answer`.
  RuntimeTable& info() { return info_; }

  // As a runtime does that was asked to load the library by an agent that wants these kinds. The library waits for
  // the last call of an attach before it asks to be unloaded.
  Hresult Attach(uint64_t kinds) {
    const Hresult result = BeginAttach(kinds);
    return Succeeded(result) ? Call(kProfilerAttachComplete) : result;
  }
  Hresult BeginAttach(uint64_t kinds);
  // The same at the start of a program, by environment variables.
  Hresult Start(uint64_t kinds);
  template <typename... Arguments>
  Hresult Call(unsigned slot, Arguments... arguments) {
    return CallSlot(profiler_, slot, arguments...);
  }

  // The agent goes; how, the library does not see.
  void CloseAgent() { connection_.reset(); }
  // The agent asks for the end and waits for it; false: it does not come in 20 s.
  bool StopAgent();
  std::vector<LibraryRecord> Records();
  uint64_t left_out() const { return reader_->left_out(); }

  std::atomic<Hresult> detach_answer = kOk;
  std::atomic<int> detach_requests = 0;
  std::atomic<int> masks = 0;      // how often a mask was set
  std::atomic<uint32_t> mask = 0;  // the last one
  void (*on_mask)() = nullptr;     // called with each

  // The agent's side. Set before an attach.
  uint32_t wanted_mask = 0;
  uid_t agent_user = geteuid();
  int descriptors = 1;  // handed over; more than the ring's are of the same file

 private:
  // `call` gets the path at which the agent listens.
  Hresult MeetAgent(uint64_t kinds, absl::FunctionRef<Hresult(const std::string&)> call);

  void* library_ = nullptr;
  void* profiler_ = nullptr;
  RuntimeTable info_;
  std::optional<SharedRing> ring_;
  std::optional<InprocessRingReader> reader_;
  UniqueFd connection_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_INPROCESS_LIBRARY_HOST_H_
