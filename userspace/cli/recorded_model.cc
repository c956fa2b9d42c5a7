#include "cli/recorded_model.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/record_results.h"
#include "os/clock.h"
#include "output/pool_summary.h"
#include "output/stats_json.h"
#include "profile/labels_by_pid.h"
#include "profile/run_model.h"

namespace clrsampler {
namespace {

bool HasWallSamples(const RecordOptions& options) {
  return options.view == RecordView::kWall && options.keep_samples && !IsWholeHost(options);
}

// Whether the thread pool of the program is starved, in a sentence. Empty: nothing has workers.
std::string PoolSentence(const Recorder& recorder, const std::optional<PoolNumbers>& numbers) {
  const PoolSummary summary =
      SummarizePool(recorder.frames(), recorder.stacks(), recorder.samples(), recorder.began(), numbers);
  if (summary.workers == 0) return "";
  const std::string text = PoolSummaryText(summary, recorder.account().duration_seconds, /*rows=*/0);
  return text.substr(0, text.find('\n'));
}

}  // namespace

bool ReadsPool(const RecordOptions& options) {
  return HasWallSamples(options) && options.pids.size() == 1 && options.tape == nullptr;
}

std::string AccountJson(const Recorder& recorder, const RecordOptions& options,
                        const std::optional<PoolNumbers>& numbers) {
  PoolAccount pool{.verdict = "", .numbers = numbers};
  if (HasWallSamples(options)) pool.verdict = PoolSentence(recorder, numbers);
  return StatsJson(recorder.account(), pool);
}

absl::StatusOr<ProfileModel> RecordedModel(const Recorder& recorder, const RecordOptions& options,
                                           std::string account_json) {
  ProfileMeta meta;
  meta.view = options.view == RecordView::kPause          ? ProfileView::kPause
              : options.view == RecordView::kSuspendDelay ? ProfileView::kSuspendDelay
              : options.view == RecordView::kJit          ? ProfileView::kJit
              : options.view == RecordView::kAllocations  ? ProfileView::kAllocations
              : options.view == RecordView::kOffCpu       ? ProfileView::kOffCpu
              : options.view == RecordView::kWall         ? ProfileView::kWall
              : options.view == RecordView::kExceptions   ? ProfileView::kExceptions
                                                          : ProfileView::kCpu;
  const bool samples = options.view == RecordView::kCpu || options.view == RecordView::kPause;
  meta.unit = samples || options.view == RecordView::kExceptions ? WeightUnit::kSamples
              : options.view == RecordView::kAllocations         ? WeightUnit::kBytes
                                                                 : WeightUnit::kMicroseconds;
  if (samples) meta.period_ns = options.period_ns();
  const RunOrigin origin = options.origin ? *options.origin : OriginHere(options);
  if (origin.boot_unix_ns != 0) meta.start_unix_ns = origin.boot_unix_ns + recorder.began().ns;
  meta.start_monotonic_ns = recorder.began().ns;
  meta.duration_ns = static_cast<uint64_t>(recorder.account().duration_seconds * 1e9);
  meta.whole_host = options.pids.empty() && options.command.empty();
  meta.host = origin.host;
  meta.command = absl::StrJoin(options.command, " ");
  meta.pids = options.pids;
  meta.creator = "clrsampler " CLRSAMPLER_VERSION;
  meta.labels = LabelsByPid(recorder.account().processes);
  meta.account_json = std::move(account_json);
  if (!options.keep_samples)
    return CountedRunModel(recorder.frames(), recorder.stacks(), std::move(meta), recorder.source_files());
  return SampledRunModel(recorder.frames(), recorder.stacks(), recorder.samples(), recorder.began(), std::move(meta),
                         recorder.source_files(), recorder.code(), recorder.events());
}

}  // namespace clrsampler
