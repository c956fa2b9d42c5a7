// Connections for questions to a history, and the order in which they are asked.
//
// Threads of the HTTP server meet here, and the writer where the file is replaced. They share the list of idle
// connections. So this is a lock and not a message.
#ifndef CLRSAMPLER_STORE_HISTORY_READERS_H_
#define CLRSAMPLER_STORE_HISTORY_READERS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "status/status.h"
#include "store/history_file.h"
#include "store/history_reader.h"

namespace clrsampler {

class HistoryReaders {
 public:
  // The file is borrowed.
  explicit HistoryReaders(const HistoryFile& file) : file_(file) {}

  void End() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    left_.notify_all();
  }

  template <typename Answer>
  absl::StatusOr<Answer> Ask(absl::FunctionRef<absl::StatusOr<Answer>(HistoryReader&)> question) {
    const bool entered = Enter();
    const absl::Cleanup leave = [&] {
      if (entered) Leave();
    };
    if (ended_) return absl::CancelledError("clrsampler is ending");
    if (!entered) {
      return WithHint(absl::UnavailableError("the history is busy with other questions"), "try again later");
    }
    const uint64_t generation = Generation();
    absl::StatusOr<std::unique_ptr<HistoryReader>> reader = Take();
    if (!reader.ok()) {
      NoteDamage(reader.status(), generation);
      return reader.status();
    }
    const uint64_t damaged_before = (*reader)->damaged_parts();
    absl::StatusOr<Answer> answer = question(**reader);
    damaged_parts_ += (*reader)->damaged_parts() - damaged_before;
    NoteDamage(answer.status(), generation);
    if (answer.ok()) GiveBack(*std::move(reader), generation);
    return answer;
  }

  // The file is another one now. Questions that are under way are about the one before.
  void Renew() {
    const std::lock_guard lock(mutex_);
    idle_.clear();
    ++generation_;
    damage_seen_ = false;
  }
  bool damage_seen() const { return damage_seen_; }
  uint64_t damaged_parts() const { return damaged_parts_; }

 private:
  // It may take 200 MB for its answer on a very large host.
  static constexpr int kMaxAtOnce = 1;
  static constexpr std::chrono::seconds kMaxWait{20};

  bool Enter() {
    std::unique_lock lock(mutex_);
    if (!left_.wait_for(lock, kMaxWait, [this] { return ended_ || inside_ < kMaxAtOnce; }) || ended_) return false;
    ++inside_;
    return true;
  }
  void Leave() {
    {
      const std::lock_guard lock(mutex_);
      --inside_;
    }
    left_.notify_one();
  }
  uint64_t Generation() {
    const std::lock_guard lock(mutex_);
    return generation_;
  }
  absl::StatusOr<std::unique_ptr<HistoryReader>> Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<HistoryReader> reader = std::move(idle_.back());
        idle_.pop_back();
        return reader;
      }
    }
    return HistoryReader::Open(file_, ended_);
  }
  void GiveBack(std::unique_ptr<HistoryReader> reader, uint64_t generation) {
    const std::lock_guard lock(mutex_);
    if (generation == generation_) idle_.push_back(std::move(reader));
  }
  // Damage of a file that was set aside meanwhile says nothing about the one that has taken its place.
  void NoteDamage(const absl::Status& status, uint64_t generation) {
    if (!absl::IsDataLoss(status)) return;
    const std::lock_guard lock(mutex_);
    if (generation == generation_) damage_seen_ = true;
  }

  const HistoryFile& file_;
  std::mutex mutex_;
  std::condition_variable left_;
  int inside_ = 0;
  std::atomic<bool> ended_ = false;
  uint64_t generation_ = 0;  // of the file
  std::vector<std::unique_ptr<HistoryReader>> idle_;
  std::atomic<bool> damage_seen_ = false;
  std::atomic<uint64_t> damaged_parts_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_HISTORY_READERS_H_
