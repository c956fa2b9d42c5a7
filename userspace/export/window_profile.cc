#include "export/window_profile.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "profile/window_owners.h"
#include "profile/window_part.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kShortestContainerId = 12;

const ProfileModel& ModelOf(const Window& window, WindowPart part) {
  switch (part) {
    case WindowPart::kJit:
      return window.jit;
    case WindowPart::kSuspendDelay:
      return window.suspend_delay;
    case WindowPart::kAllocations:
      return window.allocations;
    case WindowPart::kWaits:
      return window.waits;
    case WindowPart::kCpu:
      break;
  }
  return window.cpu;
}

}  // namespace

bool Selects(const HistorySelection& selection, const WindowProcess& process) {
  if (selection.pid && *selection.pid != process.pid) return false;
  if (selection.comm && *selection.comm != process.comm) return false;
  if (!selection.container) return true;
  const std::string& wanted = *selection.container;
  return wanted == process.container ||
         (wanted.size() >= kShortestContainerId && absl::StartsWith(process.container_id, wanted));
}

bool SelectsThread(const HistorySelection& selection, uint32_t tid, absl::string_view name) {
  if (!selection.thread || *selection.thread == name) return true;
  uint32_t number = 0;
  return absl::SimpleAtoi(*selection.thread, &number) && number == tid;
}

std::vector<bool> SelectedThreads(const Window& window, const ProfileModel& model, const HistorySelection& selection) {
  const WindowOwners owners(window);
  std::vector<bool> selected;
  for (const ModelThread& thread : model.threads) {
    const std::optional<size_t> owner = owners.Of(model, thread);
    selected.push_back(Selects(selection, owner ? window.processes[*owner] : AsProcess(model, thread)) &&
                       SelectsThread(selection, thread.tid, model.text(thread.name)));
  }
  return selected;
}

WindowProfile::WindowProfile(const HistorySelection& selection, ProfileView view, bool keep_times,
                             const SampleSums::Limits& limits)
    : selection_(selection), view_(view), keep_times_(keep_times), sums_(builder_, limits) {
  ProfileMeta& meta = builder_.meta();
  meta.view = view;
  meta.unit = WindowUnitOf(view);
  meta.whole_host = true;
  meta.start_unix_ns = selection.from_unix_ns;
  meta.duration_ns = selection.to_unix_ns - selection.from_unix_ns;
  if (selection.pid) meta.pids = {*selection.pid};
}

bool WindowProfile::Record(const Window& window) {
  const uint64_t from = selection_.from_unix_ns, to = selection_.to_unix_ns;
  const bool whole = WindowPartOf(view_) != WindowPart::kCpu;
  const bool begun_before = whole ? window.begin_unix_ns < from : window.end_unix_ns <= from;
  if (begun_before || window.begin_unix_ns >= to) return false;
  const TimeStretch stretch = {std::max(window.begin_unix_ns, from) - from,
                               (whole ? window.end_unix_ns : std::min(window.end_unix_ns, to)) - from};
  ProfileMeta& meta = builder_.meta();
  meta.duration_ns = std::max(meta.duration_ns, stretch.end_ns);
  recorded_.push_back(stretch);
  return true;
}

absl::Status WindowProfile::Add(const Window& window) {
  if (!Record(window)) return absl::OkStatus();
  const WindowPart part = WindowPartOf(view_);
  const ProfileModel& model = ModelOf(window, part);
  ProfileMeta& meta = builder_.meta();
  if (meta.host.empty()) meta.host = model.meta.host;
  if (meta.creator.empty()) meta.creator = model.meta.creator;
  const std::vector<bool> threads = SelectedThreads(window, model, selection_);
  ModelCopier copier(model, builder_);
  for (size_t row = 0; row < model.samples.size(); ++row) {
    ModelSample sample = model.samples.at(row);
    if (!threads[sample.thread]) continue;
    if (view_ == ProfileView::kPause && sample.state != SampleState::kPaused) continue;
    const uint64_t time = window.begin_unix_ns + (sample.time_ns == kNoTime ? 0 : sample.time_ns);
    if (part == WindowPart::kCpu && (time < selection_.from_unix_ns || time >= selection_.to_unix_ns)) continue;
    if (sample.time_ns != kNoTime) sample.time_ns = time - selection_.from_unix_ns;
    RETURN_IF_ERROR(AddSample(model, sample, copier));
  }
  copier.Sources();
  return absl::OkStatus();
}

absl::Status WindowProfile::AddSample(const ProfileModel& model, ModelSample sample, ModelCopier& copier) {
  if (!keep_times_) RETURN_IF_ERROR(sums_.MakeRoom());
  if (sums_.by_thread()) {
    sample.thread = copier.Thread(sample.thread);
  } else {
    const ModelThread& thread = model.threads[sample.thread];
    sample.thread = builder_.Thread(
        {.pid = thread.pid, .comm = copier.String(thread.comm), .container_id = copier.String(thread.container_id)});
  }
  sample.stack = copier.Stack(sample.stack);
  sample.link = 0;  // equal stacks are added up
  if (keep_times_) {
    builder_.Add(sample);
  } else {
    sums_.Add(sample.thread, sample.stack, sample.state, sample.weight);
  }
  return absl::OkStatus();
}

void WindowProfile::ShiftClock(int64_t jump_ns) {
  selection_.from_unix_ns += static_cast<uint64_t>(jump_ns);
  selection_.to_unix_ns += static_cast<uint64_t>(jump_ns);
}

absl::StatusOr<ProfileModel> WindowProfile::Build() && {
  sums_.Finish();
  if (recorded_.empty()) builder_.meta().duration_ns = 0;  // no window, of no time
  builder_.meta().SetRecorded(std::move(recorded_));
  return std::move(builder_).Build();
}

}  // namespace clrsampler
