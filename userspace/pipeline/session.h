// The purpose of a run: one recording (RunSession), or windows without an end (ServeSession). The loop asks it, and
// knows nothing of the difference.
#ifndef CLRSAMPLER_PIPELINE_SESSION_H_
#define CLRSAMPLER_PIPELINE_SESSION_H_

#include <string>

#include "os/clock.h"
#include "pipeline/fresh_start.h"
#include "pipeline/sample_sink.h"
#include "process/process.h"
#include "process/process_key.h"

namespace clrsampler {

// Main loop only.
class Session {
 public:
  virtual ~Session() = default;

  virtual SampleSink& sink() = 0;
  // Whether what the process does counts. The second is asked of one that may have left the table.
  virtual bool Selects(const Process& process) const = 0;
  virtual bool SelectsKey(ProcessKey key) = 0;
  // Each compilation goes into the sink, though nobody else asked for it.
  virtual bool wants_compilations() const = 0;
  // Nothing is lost by an iteration that comes later, where the parts have no objection.
  virtual bool may_idle() const = 0;

  // Sampling has begun.
  virtual void Begin() = 0;
  // Everything that is handled from here on is not older than this.
  virtual void Reach(MonotonicTime time) = 0;
  // Before what has come is read.
  virtual void BeginIteration(MonotonicTime now) = 0;
  // Some times a second.
  virtual void SlowIteration(MonotonicTime now) = 0;
  // The process is about to leave the table, or the run ends: the last chance to describe it.
  virtual void Describe(const Process& process) = 0;
  virtual void Ended(ProcessKey key) = 0;
  // The run is to end although nobody said so, as the caller begins anew.
  virtual FreshStart WantsFreshStart(MonotonicTime now) const = 0;
  // Sampling is about to stop.
  virtual void StopsSampling() = 0;
  // All has been handled.
  virtual void Finish() = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SESSION_H_
