#include "profile/model_filter.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "profile/model_copier.h"
#include "profile/name_filter.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// For each node whether it or one of its callers has a name that matches.
absl::StatusOr<std::vector<bool>> StacksWith(const ProfileModel& model, absl::string_view option,
                                             const std::string& expression) {
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Make(option, expression));
  std::vector<bool> frames;
  for (const ModelFrame& frame : model.frames) {
    frames.push_back(filter.Matches(model.text(frame.name)));
  }
  std::vector<bool> nodes(model.nodes.size(), false);
  for (size_t i = 1; i < nodes.size(); ++i) nodes[i] = nodes[model.nodes[i].parent] || frames[model.nodes[i].frame];
  return nodes;
}

absl::StatusOr<std::vector<bool>> ThreadsWith(const ProfileModel& model, const std::string& expression) {
  uint32_t tid = 0;
  if (absl::SimpleAtoi(expression, &tid)) {
    std::vector<bool> threads;
    for (const ModelThread& thread : model.threads) threads.push_back(thread.tid == tid);
    return threads;
  }
  ASSIGN_OR_RETURN(const NameFilter filter, NameFilter::Make("--thread", expression));
  std::vector<bool> threads;
  for (const ModelThread& thread : model.threads) {
    threads.push_back(filter.Matches(model.text(thread.name)));
  }
  return threads;
}

// A stretch of a recording that becomes a recording of its own. Its times count from its own beginning, so that every
// reader finds the samples between the start and the end that the profile names.
class TimePart {
 public:
  TimePart(const ProfileFilter& filter, const ProfileMeta& meta)
      : from_ns_(filter.from_ns.value_or(0)),
        to_ns_(std::max(from_ns_, filter.to_ns.value_or(kNoTime))),
        wait_unit_ns_(!HasWaits(meta.view)                     ? 0
                      : meta.unit == WeightUnit::kMicroseconds ? 1000
                      : meta.unit == WeightUnit::kNanoseconds  ? 1
                                                               : 0) {}

  // nullopt: nothing of it lies in the part. A wait lasts from its time for its weight, and keeps what lies in the
  // part.
  std::optional<ModelSample> Cut(ModelSample sample) const {
    if (sample.time_ns == kNoTime || sample.time_ns >= to_ns_) return std::nullopt;
    const uint64_t begin = std::max(sample.time_ns, from_ns_);
    if (wait_unit_ns_ == 0) {
      if (sample.time_ns < from_ns_) return std::nullopt;
    } else {
      const uint64_t before = (begin - sample.time_ns) / wait_unit_ns_, most = (to_ns_ - begin) / wait_unit_ns_;
      if (sample.weight <= before) return std::nullopt;
      sample.weight = std::min(sample.weight - before, most);
      if (sample.weight == 0) return std::nullopt;
    }
    sample.time_ns = begin - from_ns_;
    return sample;
  }

  // nullopt: nothing of it lies in the part. Else the event with what does.
  std::optional<ModelEvent> Cut(ModelEvent event) const {
    const uint64_t begin = event.time_ns, end = begin + std::min(event.duration_ns, kNoTime - begin);
    if (begin >= to_ns_ || (begin < from_ns_ && end <= from_ns_)) return std::nullopt;
    event.time_ns = std::max(begin, from_ns_) - from_ns_;
    event.duration_ns = std::min(end, to_ns_) - std::max(begin, from_ns_);
    return event;
  }

  void Cut(ProfileMeta& meta) const {
    meta.account_json.clear();  // it counts removed samples as well
    for (uint64_t* start : {&meta.start_unix_ns, &meta.start_monotonic_ns}) {
      if (*start > 0) *start += std::min(from_ns_, kNoTime - *start);
    }
    if (meta.duration_ns == 0) return;
    std::vector<TimeStretch> stretches = meta.Stretches();
    std::erase_if(stretches, [&](const TimeStretch& one) { return one.end_ns <= from_ns_ || one.begin_ns >= to_ns_; });
    for (TimeStretch& one : stretches) {
      one = {std::max(one.begin_ns, from_ns_) - from_ns_, std::min(one.end_ns, to_ns_) - from_ns_};
    }
    const uint64_t end = std::min(to_ns_, meta.duration_ns);
    meta.duration_ns = end - std::min(from_ns_, end);
    meta.SetRecorded(std::move(stretches));
  }

 private:
  const uint64_t from_ns_, to_ns_;
  const uint64_t wait_unit_ns_;  // of weights that are lengths of waits; 0: they are none
};

}  // namespace

bool ProfileFilter::empty() const {
  return !focus && !ignore && !thread && !from_ns && !to_ns && !no_kernel && !fold_recursion;
}

absl::StatusOr<ProfileModel> FilterProfile(ProfileModel model, const ProfileFilter& filter) {
  if (filter.empty()) return model;
  std::optional<std::vector<bool>> focused, ignored, threads;
  if (filter.focus) {
    auto nodes = StacksWith(model, "--focus", *filter.focus);
    if (!nodes.ok()) return nodes.status();
    focused = *std::move(nodes);
  }
  if (filter.ignore) {
    auto nodes = StacksWith(model, "--ignore", *filter.ignore);
    if (!nodes.ok()) return nodes.status();
    ignored = *std::move(nodes);
  }
  if (filter.thread) {
    auto chosen = ThreadsWith(model, *filter.thread);
    if (!chosen.ok()) return chosen.status();
    threads = *std::move(chosen);
  }
  const bool by_time = filter.from_ns || filter.to_ns;
  if (by_time && model.samples.time_ns.empty() && model.samples.size() > 0) {
    return WithHint(absl::InvalidArgumentError("--from and --to need the times of samples, which this profile has not"),
                    "only the format .json keeps them: record -o FILE.json");
  }

  ProfileModelBuilder builder;
  builder.meta() = model.meta;
  const TimePart part(filter, model.meta);
  if (by_time) part.Cut(builder.meta());
  ModelCopier copier(model, builder, [&](NodeIndex node) {
    const ModelFrame& frame = model.frame_of(node);
    if (filter.no_kernel && frame.kind == ModelFrameKind::kKernel) return false;
    const NodeIndex parent = model.nodes[node].parent;
    return !(filter.fold_recursion && parent != kRootNode && model.frame_of(parent).name == frame.name);
  });
  for (size_t row = 0; row < model.samples.size(); ++row) {
    ModelSample sample = model.samples.at(row);
    if (focused && !(*focused)[sample.stack]) continue;
    if (ignored && (*ignored)[sample.stack]) continue;
    if (threads && !(*threads)[sample.thread]) continue;
    if (by_time) {
      const std::optional<ModelSample> cut = part.Cut(sample);
      if (!cut) continue;
      sample = *cut;
    }
    sample.stack = copier.Stack(sample.stack);
    sample.thread = copier.Thread(sample.thread);
    sample.link = copier.Link(sample.link);
    builder.Add(sample);
  }
  copier.Sources();
  copier.Events([&](const ModelEvent& event) { return by_time ? part.Cut(event) : event; });
  return std::move(builder).Build();
}

}  // namespace clrsampler
