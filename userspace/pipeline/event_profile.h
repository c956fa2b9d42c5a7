// Events of a runtime's stream -> a profile: stacks with names and weights, each event with its time where that is
// wanted, and the account of it all.
#ifndef CLRSAMPLER_PIPELINE_EVENT_PROFILE_H_
#define CLRSAMPLER_PIPELINE_EVENT_PROFILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "formats/nettrace/clr_event_stream.h"
#include "formats/profile/profile_model.h"
#include "os/clock.h"
#include "pipeline/event_stacks.h"
#include "pipeline/event_watch.h"
#include "pipeline/lock_waits.h"
#include "pipeline/process_ledger.h"
#include "profile/account.h"
#include "profile/sample_log.h"
#include "profile/stack_table.h"
#include "runtime_events/counted_event.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/source_files.h"

namespace clrsampler {

struct EventProfileOptions {
  ProfileView view = ProfileView::kExceptions;  // one that EventKindsOf knows
  EventStacksOptions stacks;
  bool keep_samples = false;      // SampleLog is filled
  uint32_t buffer_megabytes = 0;  // of the runtime's session, for what is said of losses
};

// Main loop only.
class EventProfile {
 public:
  // Names of types that a process can make us keep: of 2,048 characters each.
  static constexpr size_t kMaxTypes = 1 << 14;
  // Distinct stacks: of some 100 frames each they take 64 MB. An event with another one has a mark and its type.
  static constexpr size_t kMaxStacks = 1 << 17;
  // Threads with events whose times are kept. Events of others are those of a thread 0.
  static constexpr size_t kMaxThreads = 1 << 16;

  explicit EventProfile(const EventProfileOptions& options);

  // The session has begun: all that counts has happened since then.
  void Begin(MonotonicTime since) { began_ = since; }
  // In the order of their times. Events that the view does not count are passed over.
  void Add(const ClrEventRecord& record);
  // The session is over: the account is complete.
  void Finish(const EventWatchResult& result);

  const FrameTable& frames() const { return stacks_.frames(); }
  const StackTable& stacks() const { return table_; }
  const SampleLog& samples() const { return samples_; }
  const SourceFiles& source_files() const { return stacks_.sources().source_files(); }
  const Account& account() const { return account_; }
  MonotonicTime began() const { return began_; }

 private:
  FrameId TypeFrame(absl::string_view type);
  FrameId Mark(absl::string_view text);
  // Into stack_, without what the runtime does to throw or to wait.
  void Name(const ClrEventRecord& record);
  void Count(const ClrEventRecord& record, const CountedEvent& counted);
  // Puts a mark in the place of stack_ if there is no room for it.
  void BoundStack(LabelId label, bool has_type);
  void KeepSample(const ClrEventRecord& record, StackId stack, uint64_t weight);
  void CountSources();
  void SayWhatIsMissing(const EventWatchResult& result);

  const EventProfileOptions options_;
  EventStacks stacks_;
  StackTable table_;
  ProcessLedger ledger_;
  SampleLog samples_;
  Account account_;
  MonotonicTime began_;
  absl::flat_hash_map<std::string, FrameId> types_;
  LockWaits waits_;
  std::vector<FrameId> stack_;
  absl::flat_hash_set<uint64_t> threads_;  // of samples_
  uint64_t without_stack_ = 0;
  uint64_t stacks_left_out_ = 0;  // events, as the next one
  uint64_t threads_left_out_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_EVENT_PROFILE_H_
