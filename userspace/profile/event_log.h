// The actions of runtimes during a run, with times: pauses, collections, compilations. For formats that show time.
//
// Some 100 bytes an entry, 64 Ki entries at most. Later ones are counted and left out.
#ifndef CLRSAMPLER_PROFILE_EVENT_LOG_H_
#define CLRSAMPLER_PROFILE_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/profile/model_event.h"
#include "os/clock.h"
#include "profile/sample_log.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class EventLog {
 public:
  struct Entry {
    ModelEventKind kind = ModelEventKind::kPause;
    MonotonicTime began;
    uint64_t duration_ns = 0;
    SampleLog::Thread thread;  // tid 0: the whole process
    std::string name;
    std::string detail;
  };
  static constexpr size_t kMaxEntries = 64 << 10;
  explicit EventLog(size_t max_entries = kMaxEntries) : max_entries_(max_entries) {}

  void Add(Entry entry) {
    main_loop_.Check();
    if (entries_.size() >= max_entries_) {
      ++left_out_;
      return;
    }
    entries_.push_back(std::move(entry));
  }
  const std::vector<Entry>& entries() const { return entries_; }
  uint64_t left_out() const { return left_out_; }

 private:
  const size_t max_entries_;
  std::vector<Entry> entries_;
  uint64_t left_out_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_EVENT_LOG_H_
