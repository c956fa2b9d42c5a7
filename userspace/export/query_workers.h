// The threads that answer what takes long, at most so many at a time, and behind them a short queue: a page asks for
// some things at once, and needs no error for that.
#ifndef CLRSAMPLER_EXPORT_QUERY_WORKERS_H_
#define CLRSAMPLER_EXPORT_QUERY_WORKERS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace clrsampler {

// They run with a lower priority than sampling.
class QueryWorkers {
 public:
  QueryWorkers(size_t threads, size_t queue);
  // What is under way is brought to its end; what waits is dropped.
  ~QueryWorkers();

  // False: the queue is full.
  bool Submit(std::function<void()> job);

 private:
  void Run();

  const size_t most_queued_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_QUERY_WORKERS_H_
