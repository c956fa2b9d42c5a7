// All that the kernel sends during a run: samples and events of hooks, and what happens to processes.
//
// The seam between the kernel and the rest: LiveCapture reads rings, RecordedCapture plays a tape.
#ifndef CLRSAMPLER_CAPTURE_EVENT_STREAM_H_
#define CLRSAMPLER_CAPTURE_EVENT_STREAM_H_

#include "absl/functional/function_ref.h"
#include "capture/ring_reader.h"
#include "capture/side_band_parser.h"
#include "clrsampler/wire.h"

namespace clrsampler {

// Main loop only.
class EventStream {
 public:
  virtual ~EventStream() = default;

  // Hands over all that is there: events of processes in the order of their times, then records (wire.h), those of
  // samples and those of hooks merged by time. News of an event are known before a record that needs them.
  virtual void Drain(absl::FunctionRef<void(const SideBandEvent&)> on_event, RecordFunction on_record) = 0;
  // How full the ring of the samples is, 0 to 1. Records of hooks have a ring of their own.
  virtual double fill() const = 0;
  // The fates of all hits so far, those that are not in the stream included.
  virtual wire_counters counters() const = 0;
  // Nothing more will come.
  virtual bool ended() const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_EVENT_STREAM_H_
