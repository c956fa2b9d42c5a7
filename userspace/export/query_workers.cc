#include "export/query_workers.h"

#include <sys/resource.h>

#include <utility>

#include "export/signals_blocked.h"

namespace clrsampler {
namespace {
constexpr int kNiceness = 10;
}  // namespace

QueryWorkers::QueryWorkers(size_t threads, size_t queue) : most_queued_(queue) {
  const SignalsBlocked blocked;
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

QueryWorkers::~QueryWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool QueryWorkers::Submit(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= most_queued_) return false;
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void QueryWorkers::Run() {
  setpriority(PRIO_PROCESS, 0, kNiceness);  // on Linux: of this thread
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
  }
}

}  // namespace clrsampler
