#include "export/window_profile.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "profile/model_copier.h"
#include "profile/window_owners.h"
#include "profile/window_part.h"

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

WindowProfile::WindowProfile(const HistorySelection& selection, ProfileView view, bool keep_times)
    : selection_(selection), view_(view), keep_times_(keep_times) {
  ProfileMeta& meta = builder_.meta();
  meta.view = view;
  meta.unit = WindowUnitOf(view);
  meta.whole_host = true;
  meta.start_unix_ns = selection.from_unix_ns;
  meta.duration_ns = selection.to_unix_ns - selection.from_unix_ns;
  if (selection.pid) meta.pids = {*selection.pid};
}

void WindowProfile::Add(const Window& window) {
  if (window.begin_unix_ns >= selection_.to_unix_ns || window.end_unix_ns <= selection_.from_unix_ns) return;
  const ProfileModel& model = ModelOf(window, WindowPartOf(view_));
  ProfileMeta& meta = builder_.meta();
  if (meta.host.empty()) meta.host = model.meta.host;
  if (meta.creator.empty()) meta.creator = model.meta.creator;
  recorded_.push_back({std::max(window.begin_unix_ns, selection_.from_unix_ns) - selection_.from_unix_ns,
                       std::min(window.end_unix_ns, selection_.to_unix_ns) - selection_.from_unix_ns});
  const std::vector<bool> threads = SelectedThreads(window, model, selection_);
  ModelCopier copier(model, builder_);
  for (size_t row = 0; row < model.samples.size(); ++row) {
    ModelSample sample = model.samples.at(row);
    sample.link = 0;  // equal stacks are added up
    if (!threads[sample.thread]) continue;
    if (view_ == ProfileView::kPause && sample.state != SampleState::kPaused) continue;
    // An event without a time is somewhere in the window. It counts where the window begins.
    const uint64_t time = window.begin_unix_ns + (sample.time_ns == kNoTime ? 0 : sample.time_ns);
    if (time < selection_.from_unix_ns || time >= selection_.to_unix_ns) continue;
    sample.thread = copier.Thread(sample.thread);
    sample.stack = copier.Stack(sample.stack);
    if (keep_times_) {
      if (sample.time_ns != kNoTime) sample.time_ns = time - selection_.from_unix_ns;
      builder_.Add(sample);
    } else {
      uint64_t& weight = weights_[Row(sample.thread, sample.stack, sample.state)];
      weight += std::min(sample.weight, kMaxTotalWeight - std::min(weight, kMaxTotalWeight));
    }
  }
  copier.Sources();
}

void WindowProfile::ShiftClock(int64_t jump_ns) {
  selection_.from_unix_ns += static_cast<uint64_t>(jump_ns);
  selection_.to_unix_ns += static_cast<uint64_t>(jump_ns);
}

absl::StatusOr<ProfileModel> WindowProfile::Build() && {
  std::vector<std::pair<Row, uint64_t>> rows(weights_.begin(), weights_.end());
  std::sort(rows.begin(), rows.end());
  for (const auto& [row, weight] : rows) {
    builder_.Add({kNoTime, std::get<0>(row), std::get<1>(row), std::get<2>(row), weight});
  }
  builder_.meta().SetRecorded(std::move(recorded_));
  return std::move(builder_).Build();
}

}  // namespace clrsampler
