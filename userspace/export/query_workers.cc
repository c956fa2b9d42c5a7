#include "export/query_workers.h"

#include <sys/resource.h>
#include <time.h>

#include <utility>

#include "export/signals_blocked.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

constexpr int kNiceness = 10;

uint64_t Now() { return NowNs(CLOCK_MONOTONIC); }

}  // namespace

QueryWorkers::QueryWorkers(const QueryLimits& limits) : budget_(limits, Now()) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

QueryWorkers::~QueryWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void QueryWorkers::Submit(std::string client, Job job, HttpReply reply) {
  std::optional<HttpAnswer> refusal;
  {
    const std::lock_guard lock(mutex_);
    refusal = budget_.Enter(client, Now());
    if (!refusal) waiting_.push_back({std::move(client), std::move(job), std::move(reply)});
  }
  if (refusal) return reply(*std::move(refusal));
  changed_.notify_one();
}

std::optional<HttpAnswer> QueryWorkers::Admit(const std::string& client) {
  const std::lock_guard lock(mutex_);
  return budget_.Begin(client, Now());
}

HttpAnswer QueryWorkers::RunHere(const std::string& client, const Job& job) {
  HttpAnswer answer;
  Charge(client, [&] { answer = job(); });
  return answer;
}

void QueryWorkers::Charge(const std::string& client, absl::FunctionRef<void()> work) {
  const uint64_t before_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
  work();
  const std::lock_guard lock(mutex_);
  budget_.Spend(client, NowNs(CLOCK_THREAD_CPUTIME_ID) - before_ns, Now());
}

void QueryWorkers::Run() {
  setpriority(PRIO_PROCESS, 0, kNiceness);  // on Linux: of this thread
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    std::optional<HttpAnswer> answer = budget_.Begin(next.client, Now());
    lock.unlock();
    if (!answer) answer = RunHere(next.client, next.job);
    next.reply(*std::move(answer));
    lock.lock();
    budget_.Leave(next.client);
  }
}

}  // namespace clrsampler
