#include "export/query_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

constexpr const char* kFurtherClients = "";

HttpAnswer Refusal(unsigned status, absl::string_view error, uint64_t wait_ns) {
  const std::string seconds = absl::StrCat(std::max<uint64_t>(1, (wait_ns + kSecondNs - 1) / kSecondNs));
  HttpAnswer answer = ErrorAnswer(status, error, absl::StrCat("ask again in ", seconds, " s, for a shorter time"));
  std::erase_if(answer.headers, [](const auto& header) { return header.first == "Retry-After"; });
  answer.headers.emplace_back("Retry-After", seconds);
  return answer;
}

}  // namespace

QueryBudget::Client& QueryBudget::Find(std::string& client, uint64_t now_ns) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) return found->second;
  if (clients_.size() >= limits_.known_clients) {
    std::erase_if(clients_, [&](const auto& one) { return one.second.waiting == 0 && one.second.cpu.Full(now_ns); });
  }
  if (clients_.size() >= limits_.known_clients) client = kFurtherClients;
  return clients_.try_emplace(client, Client{CpuBucket(limits_.client, now_ns)}).first->second;
}

std::optional<HttpAnswer> QueryBudget::Begin(std::string client, uint64_t now_ns) {
  if (const uint64_t wait_ns = Find(client, now_ns).cpu.WaitNs(now_ns); wait_ns > 0) {
    return Refusal(429, "your questions have taken as much of a CPU as they may", wait_ns);
  }
  if (const uint64_t wait_ns = all_.WaitNs(now_ns); wait_ns > 0) {
    return Refusal(503, "questions have taken as much of a CPU as they may", wait_ns);
  }
  return std::nullopt;
}

std::optional<HttpAnswer> QueryBudget::Enter(std::string& client, uint64_t now_ns) {
  Client& known = Find(client, now_ns);
  if (std::optional<HttpAnswer> refusal = Begin(client, now_ns)) return refusal;
  if (known.waiting >= limits_.client_waiting)
    return Refusal(429, "too many of your questions wait already", kSecondNs);
  if (waiting_ >= limits_.waiting) return Refusal(503, "too many questions are being answered", kSecondNs);
  ++known.waiting;
  ++waiting_;
  return std::nullopt;
}

void QueryBudget::Spend(std::string client, uint64_t cpu_ns, uint64_t now_ns) {
  Find(client, now_ns).cpu.Spend(cpu_ns, now_ns);
  all_.Spend(cpu_ns, now_ns);
}

void QueryBudget::Leave(const std::string& client) {
  const auto known = clients_.find(client);
  if (known == clients_.end() || known->second.waiting == 0) return;
  --known->second.waiting;
  --waiting_;
}

}  // namespace clrsampler
