// A source of names. Several are asked in order; the first that answers wins (pipeline/source_order).
#ifndef CLRSAMPLER_SYMBOLS_FRAME_SOURCE_H_
#define CLRSAMPLER_SYMBOLS_FRAME_SOURCE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "process/process.h"
#include "symbols/frame.h"

namespace clrsampler {

struct FrameQuery {
  const Process& process;
  const Mapping* mapping;   // of `lookup_address`, as of `time`; nullptr: none known
  uint64_t address;         // as sampled
  uint64_t lookup_address;  // address of an instruction inside the function: a return address less one
  MonotonicTime time;
  // A compiler said that it has put a method here, so only what begins here is an answer. Until the runtime has
  // published the method, its tables still lead to what lies before it.
  bool at_entry = false;
  uint64_t method_desc = 0;  // the compiler's word for the method; 0: not known
};

// A sample that has just arrived, for sources that must look while its code is still there.
struct ObservedSample {
  std::span<const uint64_t> addresses;  // lookup addresses, leaf first
  std::span<const wire_code_snapshot> snapshots;
  MonotonicTime time;
  bool at_entry = false;  // as in FrameQuery, for each address
};

// Roles that a source of names may have beside naming: FrameSource below. Main loop only, as the source itself.

// Looks at samples while their code is still there.
class SampleObserver {
 public:
  virtual ~SampleObserver() = default;

  // Each sample, as soon as it arrives; Resolve will ask for its addresses later. `process` is as of the last event
  // that was handled.
  virtual void Observe(const Process& process, const ObservedSample& sample) = 0;
};

// Reads what processes write or hold. So names depend on how far it has read.
class PolledSource {
 public:
  virtual ~PolledSource() = default;

  // Reads what is new for this process, within a byte budget; called before samples up to `now` are named.
  virtual void Poll(const Process& process, MonotonicTime now) = 0;

  // Everything that happened before this time has been seen; younger samples wait (profile/hold_queue), at most 2 s.
  virtual MonotonicTime CompleteUntil(ProcessKey key) const = 0;

  // Whether samples go without a name that a shorter time between two calls of Poll would have given them.
  virtual bool WantsShortIterations(MonotonicTime now) const = 0;

  // Whether the time between two calls of Poll is of no matter to names while nothing new is met: not where it tells
  // how old a name is.
  virtual bool MayIdle() const { return true; }
};

// Promises names, so that later sources need not look at their code.
class NamePromiser {
 public:
  virtual ~NamePromiser() = default;

  // Whether Resolve will name this address of JIT memory from `time` on until Generation changes. Reads nothing.
  virtual bool NamesFrom(ProcessKey key, uint64_t lookup_address, MonotonicTime time) = 0;
};

// Learns names that come after frames were named.
class LateNames {
 public:
  virtual ~LateNames() = default;

  // The run is over: frames that would have another name by what is known now, by what they should read instead.
  virtual void AddLateNames(absl::flat_hash_map<FrameId, FrameId>& names) = 0;
};

// Main loop only.
class FrameSource {
 public:
  virtual ~FrameSource() = default;

  // The code that was at this address at that time. nullopt: not mine or not known, ask the next source. A source that
  // knows why the address has no name answers with an unnamed frame: later sources are asked nevertheless, and the last
  // reason stands where none of them has a name.
  virtual std::optional<Resolution> Resolve(const FrameQuery& query) = 0;

  // Grows when an earlier answer (or the lack of one) may have changed; part of the key of the stack cache.
  virtual uint64_t Generation(ProcessKey key) const = 0;

  // The source in each of its roles, as long as it lives; nullptr: it does not have that one.
  virtual SampleObserver* observer() { return nullptr; }
  virtual PolledSource* polled() { return nullptr; }
  virtual NamePromiser* promiser() { return nullptr; }
  virtual LateNames* late_names() { return nullptr; }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_FRAME_SOURCE_H_
