// The names that the container runtime of this node has for the containers of processes. It is asked once for each
// container, and its answer is kept.
//
// Nothing here waits. A container whose name has not come yet has none.
#ifndef CLRSAMPLER_CONTAINER_RUNTIME_CONTAINER_NAMES_H_
#define CLRSAMPLER_CONTAINER_RUNTIME_CONTAINER_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "container_runtime/cri_process.h"
#include "container_runtime/cri_wire.h"
#include "formats/labels/process_labels.h"
#include "os/clock.h"
#include "status/notices.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class ContainerNames {
 public:
  static constexpr size_t kMaxContainers = 4096;  // nodes have some hundreds
  static constexpr size_t kMaxQuestions = 16;     // that are under way
  static constexpr int kTries = 3;  // of a container that the runtime does not know, or tells nonsense about

  // `socket`: for messages.
  ContainerNames(std::shared_ptr<CriHelper> helper, std::string socket, Notices& notices)
      : helper_(std::move(helper)), socket_(std::move(socket)), notices_(notices) {}

  // The pod, the container and the image of processes in this control group; empty: not known, or not known yet.
  ProcessLabels Of(absl::string_view cgroup_path, MonotonicTime now);
  // Some times a second. True: there is something new.
  bool Poll(MonotonicTime now);
  // Whether there is anything that the runtime was not asked about yet, or has not answered.
  bool waits() const { return !ended_ && (!queue_.empty() || !asked_.empty()); }

 private:
  enum class State : uint8_t { kWaiting, kKnown, kGivenUp };
  struct Entry {
    State state = State::kWaiting;
    int tries = 0;
    MonotonicTime used;
    ProcessLabels labels;
  };
  struct Waiting {
    std::string key;
    MonotonicTime due;
  };

  bool MakeRoom(MonotonicTime now);
  bool Take(const CriAnswer& answer, MonotonicTime now);
  void Send(MonotonicTime now);
  void SayFailure(const CriAnswer& answer);

  const std::shared_ptr<CriHelper> helper_;
  const std::string socket_;
  Notices& notices_;
  absl::flat_hash_map<std::string, Entry> entries_;  // by the ids within each other, with newlines between
  std::deque<Waiting> queue_;
  std::map<uint64_t, std::string> asked_;  // keys by the number of the question
  MonotonicTime may_ask_;                  // again, after the runtime gave no answer
  uint64_t pause_ns_ = 0;
  MonotonicTime swept_;
  bool ended_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CONTAINER_RUNTIME_CONTAINER_NAMES_H_
