// One recording: a profile of everything from start to end, and its account.
#ifndef CLRSAMPLER_PIPELINE_RUN_SESSION_H_
#define CLRSAMPLER_PIPELINE_RUN_SESSION_H_

#include "pipeline/label_watch.h"
#include "pipeline/run_parts.h"
#include "pipeline/run_profile.h"
#include "pipeline/session.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. Borrows both.
class RunSession : public Session {
 public:
  RunSession(RunParts& parts, RunProfile& profile) : parts_(parts), profile_(profile), labels_(parts) {}

  SampleSink& sink() override { return profile_; }
  bool Selects(const Process&) const override { return true; }
  bool SelectsKey(ProcessKey) override { return true; }
  // A profile of compilations that has times has them as events, too.
  bool wants_compilations() const override {
    return parts_.options.view == RecordView::kJit && parts_.options.keep_samples;
  }
  // Processes of a whole host may live for less than an iteration. A user who is shown events as they come is to see
  // them.
  bool may_idle() const override {
    const RecordOptions& options = parts_.options;
    return !parts_.targets.whole_host() && !options.on_pause && !options.on_runtime_event && !options.on_task_event &&
           !options.on_compilation;
  }
  void Begin() override {}
  void Reach(MonotonicTime) override {}
  void BeginIteration(MonotonicTime) override {}
  void SlowIteration(MonotonicTime now) override;
  void Describe(const Process& process) override;
  void Ended(ProcessKey key) override { labels_.Forget(key); }
  FreshStart WantsFreshStart(MonotonicTime) const override { return FreshStart::kNone; }
  void StopsSampling() override {}
  void Finish() override;

 private:
  void GiveLateNames();

  RunParts& parts_;
  RunProfile& profile_;
  LabelWatch labels_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_RUN_SESSION_H_
