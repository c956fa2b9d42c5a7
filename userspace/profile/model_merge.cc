#include "profile/model_merge.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "profile/model_copier.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The unit of the result, and the factor for the weights of each profile.
struct CommonUnit {
  WeightUnit unit = WeightUnit::kSamples;
  uint64_t period_ns = 0;
  std::vector<uint64_t> factors;
};

uint64_t NanosecondsOf(const ProfileMeta& meta) {
  if (meta.unit == WeightUnit::kBytes) return 0;
  return meta.unit == WeightUnit::kNanoseconds ? 1 : meta.unit == WeightUnit::kMicroseconds ? 1000 : meta.period_ns;
}

absl::StatusOr<CommonUnit> FindCommonUnit(const std::vector<ProfileModel>& profiles) {
  CommonUnit common;
  common.unit = profiles.front().meta.unit;
  common.factors.assign(profiles.size(), 1);
  bool same = true, all_known = true;
  for (const ProfileModel& profile : profiles) {
    same &= profile.meta.unit == common.unit;
    if (profile.meta.period_ns == 0) {
      all_known &= profile.samples.size() == 0;
      continue;
    }
    if (common.period_ns == 0) common.period_ns = profile.meta.period_ns;
    same &= profile.meta.period_ns == common.period_ns || common.unit != WeightUnit::kSamples;
  }
  // Samples of unknown length do not become known beside others.
  if (same && !all_known) common.period_ns = 0;
  if (same) return common;
  common.unit = WeightUnit::kNanoseconds;
  for (size_t i = 0; i < profiles.size(); ++i) {
    common.factors[i] = NanosecondsOf(profiles[i].meta);
    if (profiles[i].meta.unit == WeightUnit::kBytes) {
      return WithHint(absl::InvalidArgumentError(
                          absl::StrCat("profile ", i + 1, " counts bytes, and others count samples or times")),
                      "merge profiles of one kind");
    }
    if (common.factors[i] == 0) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat(
                          "profile ", i + 1, " has samples of unknown length, and others have other units")),
                      "folded text does not say how long a sample is: give the .json or .pb.gz of that recording");
    }
  }
  return common;
}

void AddWord(const std::string& word, std::string& list) {
  if (word.empty() || list == word ||
      absl::StrCat(", ", list, ", ").find(absl::StrCat(", ", word, ", ")) != std::string::npos) {
    return;
  }
  absl::StrAppend(&list, list.empty() ? "" : ", ", word);
}

// The time from the first start to the last end, and the parts of it that were recorded.
void SetTimes(const std::vector<ProfileModel>& profiles, ProfileMeta& meta) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  uint64_t start = kMost, end = 0;
  bool known = true;   // how long each of them was recorded
  bool placed = true;  // all samples are of a profile that began at a known time
  for (const ProfileModel& profile : profiles) {
    const uint64_t begin = profile.meta.start_unix_ns;
    if (begin == 0) {
      placed &= profile.samples.size() == 0;
      continue;
    }
    start = std::min(start, begin);
    end = std::max(end, begin + std::min(profile.meta.duration_ns, kMost - begin));
    known &= profile.meta.duration_ns > 0;
  }
  if (end == 0) return;
  meta.start_unix_ns = start;
  // The time of some samples is not a part of this one. Rates of all samples would be too high.
  if (!placed) return;
  meta.duration_ns = end - start;
  if (!known) return;
  std::vector<TimeStretch> recorded;
  for (const ProfileModel& profile : profiles) {
    if (profile.meta.start_unix_ns == 0) continue;
    const uint64_t shift = profile.meta.start_unix_ns - start;
    for (const TimeStretch& one : profile.meta.Stretches()) {
      recorded.push_back({shift + std::min(one.begin_ns, kMost - shift), shift + std::min(one.end_ns, kMost - shift)});
    }
  }
  meta.SetRecorded(std::move(recorded));
}

}  // namespace

absl::StatusOr<ProfileModel> MergeProfiles(const std::vector<ProfileModel>& profiles) {
  ProfileModelBuilder builder;
  if (profiles.empty()) return std::move(builder).Build();
  ASSIGN_OR_RETURN(const CommonUnit common, FindCommonUnit(profiles));
  ProfileMeta& meta = builder.meta();
  meta.unit = common.unit;
  meta.period_ns = common.period_ns;
  meta.view = profiles.front().meta.view;
  meta.creator = profiles.front().meta.creator;
  for (const ProfileModel& profile : profiles) {
    if (profile.meta.view != meta.view) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat("views ", ProfileViewText(meta.view), " and ",
                                                              ProfileViewText(profile.meta.view), " do not add up")),
                      "merge recordings of the same --view");
    }
    AddWord(profile.meta.host, meta.host);
    AddWord(profile.meta.command, meta.command);
    meta.pids.insert(meta.pids.end(), profile.meta.pids.begin(), profile.meta.pids.end());
    meta.whole_host |= profile.meta.whole_host;
  }
  std::sort(meta.pids.begin(), meta.pids.end());
  meta.pids.erase(std::unique(meta.pids.begin(), meta.pids.end()), meta.pids.end());
  SetTimes(profiles, meta);

  for (size_t i = 0; i < profiles.size(); ++i) {
    const ProfileModel& profile = profiles[i];
    ModelCopier copier(profile, builder);
    const uint64_t shift = profile.meta.start_unix_ns - std::min(profile.meta.start_unix_ns, meta.start_unix_ns);
    const bool timed = profile.meta.start_unix_ns > 0 || profiles.size() == 1;
    for (size_t row = 0; row < profile.samples.size(); ++row) {
      ModelSample sample = profile.samples.at(row);
      sample.link = copier.Link(sample.link);
      sample.stack = copier.Stack(sample.stack);
      sample.thread = copier.Thread(sample.thread);
      sample.time_ns = sample.time_ns == kNoTime || !timed ? kNoTime : sample.time_ns + shift;
      if (sample.weight > kMaxTotalWeight / common.factors[i]) {
        return absl::OutOfRangeError("the CPU time of a sample is more than 2^63 ns");
      }
      sample.weight *= common.factors[i];
      builder.Add(sample);
    }
    copier.Sources();
    if (!timed) continue;
    copier.Events([&](ModelEvent event) {
      event.time_ns += shift;
      return event;
    });
  }
  return std::move(builder).Build();
}

}  // namespace clrsampler
