// The thread that answers what takes long, one question at a time, and before it a short queue: a page asks for some
// things at once, and needs no error for that. The cost of questions is within a budget (query_budget.h).
#ifndef CLRSAMPLER_EXPORT_QUERY_WORKERS_H_
#define CLRSAMPLER_EXPORT_QUERY_WORKERS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "export/http_message.h"
#include "export/query_budget.h"

namespace clrsampler {

// It runs with a lower priority than sampling.
class QueryWorkers {
 public:
  using Job = std::function<HttpAnswer()>;

  explicit QueryWorkers(const QueryLimits& limits);
  // A question under way is brought to its end; those that wait are dropped.
  ~QueryWorkers();

  // `reply` is called with what `job` gives, or with a refusal. Where it is made: on the worker's thread, or on this
  // one.
  void Submit(std::string client, Job job, HttpReply reply);
  // The same on the caller's thread, for what is not asked for at the moment when it can be answered. Refusals are
  // Admit's: the work at hand is only paid for.
  HttpAnswer RunHere(const std::string& client, const Job& job);
  // Does a part of such work on the caller's thread, and has the client pay for it.
  void Charge(const std::string& client, absl::FunctionRef<void()> work);
  // Whether the client may ask now; the answer that refuses it.
  std::optional<HttpAnswer> Admit(const std::string& client);

 private:
  struct Waiting {
    std::string client;
    Job job;
    HttpReply reply;
  };
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  QueryBudget budget_;
  std::deque<Waiting> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_QUERY_WORKERS_H_
