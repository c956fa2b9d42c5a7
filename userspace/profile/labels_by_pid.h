// The labels of processes that samples name by their pid only.
#ifndef CLRSAMPLER_PROFILE_LABELS_BY_PID_H_
#define CLRSAMPLER_PROFILE_LABELS_BY_PID_H_

#include <cstdint>
#include <map>
#include <vector>

#include "formats/labels/process_labels.h"

namespace clrsampler {

// A pid that two processes had with different labels is left out: the samples of one must not get the name of the
// other. `processes`: of a type with `pid` and `labels`.
template <typename NamedProcess>
std::map<uint32_t, ProcessLabels> LabelsByPid(const std::vector<NamedProcess>& processes) {
  std::map<uint32_t, ProcessLabels> labels;
  for (const NamedProcess& process : processes) {
    const auto [found, added] = labels.try_emplace(process.pid, process.labels);
    if (!added && found->second != process.labels) found->second = ProcessLabels();
  }
  std::erase_if(labels, [](const auto& entry) { return entry.second.empty(); });
  return labels;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_LABELS_BY_PID_H_
