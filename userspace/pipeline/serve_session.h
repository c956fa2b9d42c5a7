// Windows without an end: each is closed in its time and handed on, at a rate that the machine can bear.
#ifndef CLRSAMPLER_PIPELINE_SERVE_SESSION_H_
#define CLRSAMPLER_PIPELINE_SERVE_SESSION_H_

#include "pipeline/file_pages.h"
#include "pipeline/label_watch.h"
#include "pipeline/record_options.h"
#include "pipeline/run_parts.h"
#include "pipeline/session.h"
#include "pipeline/window_series.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. Borrows both.
class ServeSession : public Session {
 public:
  ServeSession(RunParts& parts, const WindowOptions& options);

  SampleSink& sink() override { return windows_.builder(); }
  bool Selects(const Process& process) const override { return !options_.selects || options_.selects(process); }
  // One that has left the table counts where a window has seen it.
  bool SelectsKey(ProcessKey key) override;
  bool wants_compilations() const override { return true; }
  bool may_idle() const override { return false; }
  void Begin() override;
  // Closes the windows that end before `time`.
  void Reach(MonotonicTime time) override;
  void BeginIteration(MonotonicTime now) override;
  void SlowIteration(MonotonicTime now) override;
  void StopsSampling() override;
  void Describe(const Process& process) override;
  void Ended(ProcessKey key) override;
  FreshStart WantsFreshStart(MonotonicTime now) const override;
  void Finish() override;

 private:
  void Close(MonotonicTime end);
  void SumUpWaits();
  void ReadOpenWaits(MonotonicTime end);
  void ControlRate(MonotonicTime now);

  RunParts& parts_;
  const WindowOptions& options_;
  WindowSeries windows_;
  FilePages file_pages_;
  LabelWatch labels_;
  MonotonicTime last_rate_control_;
  MonotonicTime looked_;  // as of then
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SERVE_SESSION_H_
