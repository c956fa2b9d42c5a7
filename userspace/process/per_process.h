// State that is kept for each process, and that goes with the program it is about.
#ifndef CLRSAMPLER_PROCESS_PER_PROCESS_H_
#define CLRSAMPLER_PROCESS_PER_PROCESS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "absl/container/node_hash_map.h"
#include "process/process.h"
#include "process/process_key.h"
#include "process/program_ends.h"
#include "status/thread_checker.h"

namespace clrsampler {

// A map from processes to their states. A state is made when it is first asked for, and stays where it is. It goes when
// the process has ended or has called exec, which Process::ends announces. Main loop only.
template <typename State>
class PerProcess : private ProgramEnds::Listener {
 public:
  // Called with a state that has left the map. It may be emptied, and is destroyed after the call.
  using OnEnd = std::function<void(ProcessKey, State&)>;

  PerProcess() = default;
  explicit PerProcess(OnEnd on_end) : on_end_(std::move(on_end)) {}
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() override {
    if (ends_ != nullptr) ends_->Remove(*this);
  }

  // All processes are of one table, whose announcements are listened to from the first call on.
  State& Of(const Process& process) {
    main_loop_.Check();
    if (ends_ == nullptr) {
      ends_ = process.ends;
      ends_->Add(*this);
    }
    return states_[process.key];
  }
  // nullptr: none was made.
  State* Find(ProcessKey key) {
    const auto found = states_.find(key);
    return found == states_.end() ? nullptr : &found->second;
  }
  const State* Find(ProcessKey key) const {
    const auto found = states_.find(key);
    return found == states_.end() ? nullptr : &found->second;
  }
  // As if its program had ended now.
  void End(ProcessKey key) {
    main_loop_.Check();
    auto gone = states_.extract(key);
    if (!gone.empty() && on_end_) on_end_(key, gone.mapped());
  }
  // All of them, without a call of `on_end`.
  void Clear() { states_.clear(); }

  // Pairs of key and state, in no order.
  auto begin() { return states_.begin(); }
  auto end() { return states_.end(); }
  auto begin() const { return states_.begin(); }
  auto end() const { return states_.end(); }

 private:
  void OnProgramEnd(ProcessKey key) override { End(key); }

  absl::node_hash_map<ProcessKey, State> states_;
  OnEnd on_end_;
  std::shared_ptr<ProgramEnds> ends_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_PER_PROCESS_H_
