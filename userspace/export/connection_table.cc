#include "export/connection_table.h"

#include <algorithm>

namespace clrsampler {

ConnectionTable::Id ConnectionTable::Open(const std::string& address, uint64_t now_ns) {
  Connection connection;
  connection.address = address;
  connection.since_ns = now_ns;
  connections_.emplace(next_, std::move(connection));
  return next_++;
}

void ConnectionTable::Enter(Id id, Phase phase, uint64_t now_ns) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second.phase = phase;
  found->second.since_ns = now_ns;
  if (phase == Phase::kWorking) found->second.asked = true;
}

void ConnectionTable::RequestComplete(Id id, uint64_t now_ns) { Enter(id, Phase::kWorking, now_ns); }
void ConnectionTable::AnswerBegun(Id id, uint64_t now_ns) { Enter(id, Phase::kSending, now_ns); }
void ConnectionTable::AnswerTaken(Id id, uint64_t now_ns) { Enter(id, Phase::kWaiting, now_ns); }

bool ConnectionTable::Close(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  const bool silent = !found->second.asked && !found->second.judged;
  connections_.erase(found);
  return silent;
}

std::vector<ConnectionTable::Verdict> ConnectionTable::Judge(uint64_t now_ns) {
  std::vector<Verdict> verdicts;
  size_t staying = 0;
  std::map<std::string, size_t> by_address;
  // Those that wait for a request go first, then those that take their answer slowly; in each the longest first.
  std::vector<std::pair<uint64_t, Id>> waiting, sending;
  for (auto& [id, connection] : connections_) {
    if (connection.judged) continue;
    const uint64_t age = now_ns - std::min(now_ns, connection.since_ns);
    absl::string_view end;
    if (!connection.address.empty() && ++by_address[connection.address] > limits_.per_address) {
      end = "address_limit";
    } else if (connection.phase == Phase::kWaiting && age >= limits_.request_ns) {
      end = "slow_request";
    } else if (connection.phase == Phase::kSending && age >= limits_.answer_ns) {
      end = "slow_client";
    }
    if (!end.empty()) {
      connection.judged = true;
      verdicts.push_back({id, end});
      continue;
    }
    ++staying;
    if (connection.phase == Phase::kWorking || age < limits_.spared_ns) continue;
    (connection.phase == Phase::kWaiting ? waiting : sending).emplace_back(connection.since_ns, id);
  }
  std::sort(waiting.begin(), waiting.end());
  std::sort(sending.begin(), sending.end());
  waiting.insert(waiting.end(), sending.begin(), sending.end());
  for (size_t i = 0; i < waiting.size() && staying > limits_.connections; ++i, --staying) {
    connections_[waiting[i].second].judged = true;
    verdicts.push_back({waiting[i].second, "evicted"});
  }
  return verdicts;
}

}  // namespace clrsampler
