// A profile of two threads of one process, to which tests add samples and events; and what its lanes hold.
#ifndef CLRSAMPLER_TESTS_UNIT_OUTPUT_SMALL_PROFILE_H_
#define CLRSAMPLER_TESTS_UNIT_OUTPUT_SMALL_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/profile/profile_model.h"

namespace clrsampler::test_support {

struct SmallProfile {
  SmallProfile() {
    builder.meta().duration_ns = 9'000'000;
    main = builder.Thread({.pid = 10, .tid = 10, .comm = builder.String("web")});
    worker = builder.Thread({.pid = 10, .tid = 12, .comm = builder.String("web"), .name = builder.String("worker")});
    whole = builder.Thread({.pid = 10, .comm = builder.String("web")});
  }
  NodeIndex Stack(const std::vector<std::pair<ModelFrameKind, std::string>>& frames) {
    std::vector<FrameIndex> path;
    for (const auto& [kind, name] : frames) path.push_back(builder.Frame({.kind = kind, .name = builder.String(name)}));
    return builder.Stack(path);
  }
  ProfileModel Build() { return *std::move(builder).Build(); }

  ProfileModelBuilder builder;
  ThreadIndex main, worker, whole;
};

// Weights by "PID/TID;outermost;...;leaf". `empty`: what stands for a stack without frames.
inline std::map<std::string, uint64_t> WeightsOfThreads(const ProfileModel& model, const std::string& empty = "") {
  std::map<std::string, uint64_t> weights;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    std::string path;
    for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
      path = absl::StrCat(";", model.text(model.frame_of(node).name), path);
    }
    const ModelThread& thread = model.threads[model.samples.thread[row]];
    weights[absl::StrCat(thread.pid, "/", thread.tid, path.empty() ? empty : path)] += model.samples.weight_of(row);
  }
  return weights;
}

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_OUTPUT_SMALL_PROFILE_H_
