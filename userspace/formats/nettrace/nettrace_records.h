// The records of a stream of the form "nettrace", and the interface that receives them.
//
// Source: microsoft/perfview:src/TraceEvent/EventPipe/NetTraceFormat_v5.md; seen in streams of 8.0.34, 9.0.23, 10.0.15
// and 11.0.0, which all write version 4, whichever of the commands CollectTracing to CollectTracing4 asks for it.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_NETTRACE_RECORDS_H_
#define CLRSAMPLER_FORMATS_NETTRACE_NETTRACE_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace clrsampler {

// The first record of a stream.
struct NettraceStart {
  uint64_t realtime_ns = 0;       // since 1970, in whole milliseconds; 0: the stream says no date
  uint64_t ticks = 0;             // the same moment on the stream's clock
  uint64_t ticks_per_second = 0;  // 1 to 10^9. On Linux the clock is CLOCK_MONOTONIC in nanoseconds, and this is 10^9
  uint32_t pointer_bytes = 0;     // 4 or 8
  uint32_t pid = 0;               // as the process sees itself
  uint32_t processors = 0;
};

// A kind of event. It stays where it is for as long as its reader lives.
struct NettraceMetadata {
  uint32_t id = 0;
  std::string provider;   // UTF-8
  uint32_t event_id = 0;  // of that provider
  std::string name;       // UTF-8; empty for the runtime's own events
  uint64_t keywords = 0;
  uint32_t version = 0;
  uint32_t level = 0;  // 1 critical to 5 verbose
};

// The spans are valid until the receiver returns.
struct NettraceEvent {
  const NettraceMetadata* metadata = nullptr;  // never null
  uint64_t thread = 0;          // whom the event is about, as the kernel numbers it in the process's pid namespace
  uint64_t capture_thread = 0;  // who wrote it: nearly always the same
  uint32_t sequence = 0;        // number among the events of `capture_thread`, from 1 on
  uint32_t processor = 0;
  uint64_t ticks = 0;
  bool sorted = false;              // no later event of the stream is older than this one
  std::span<const uint64_t> stack;  // return addresses, innermost first; empty where the session has no stacks
  std::span<const std::byte> payload;
};

// Receives the records of one stream, on the thread that feeds the reader.
class NettraceSink {
 public:
  virtual ~NettraceSink() = default;

  virtual void OnStart(const NettraceStart& start) = 0;
  virtual void OnEvent(const NettraceEvent& event) = 0;
  // `count` events of that thread never came: its buffer was full. They are older than what comes next from it.
  virtual void OnLost(uint64_t capture_thread, uint64_t count) = 0;
  // All events before `ticks` have come, and no older one will.
  virtual void OnSequencePoint(uint64_t ticks) = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_NETTRACE_RECORDS_H_
