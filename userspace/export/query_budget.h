// The costs that questions may have: CPU time of each client and of all together, and places in the queue. A client is
// an address (of IPv6 the /64 that a client owns) or, on a Unix socket, a user.
//
// No minute has more than 2.8 s of CPU time for questions, but for what the last of them takes over. With what the
// servers' own threads may take (http_server.h), 3.1 s, that is a tenth of one CPU. Pure: times in, verdicts out.
#ifndef CLRSAMPLER_EXPORT_QUERY_BUDGET_H_
#define CLRSAMPLER_EXPORT_QUERY_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "export/cpu_bucket.h"
#include "export/http_message.h"

namespace clrsampler {

struct QueryLimits {
  CpuAllowance all = {.share = 0.03, .burst_ns = 1'000'000'000};
  CpuAllowance client = {.share = 0.025, .burst_ns = 800'000'000};
  size_t waiting = 32;          // questions of all that wait or are answered
  size_t client_waiting = 16;   // of one
  size_t known_clients = 1024;  // further ones share what one has
};

// Not thread-safe.
class QueryBudget {
 public:
  explicit QueryBudget(const QueryLimits& limits, uint64_t now_ns) : limits_(limits), all_(limits.all, now_ns) {}

  // The answer that refuses a question, 429 or 503 with Retry-After; nullopt: it has a place until Leave. `client`
  // becomes the name under which it is known until then.
  std::optional<HttpAnswer> Enter(std::string& client, uint64_t now_ns);
  // The same before work begins, which may be long after: those before it have cost something.
  std::optional<HttpAnswer> Begin(std::string client, uint64_t now_ns);
  // May come without a place, too.
  void Spend(std::string client, uint64_t cpu_ns, uint64_t now_ns);
  void Leave(const std::string& client);

  size_t known_clients() const { return clients_.size(); }

 private:
  struct Client {
    CpuBucket cpu;
    size_t waiting = 0;
  };
  // By the name under which it is known.
  Client& Find(std::string& client, uint64_t now_ns);

  const QueryLimits limits_;
  CpuBucket all_;
  size_t waiting_ = 0;
  std::map<std::string, Client> clients_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_QUERY_BUDGET_H_
