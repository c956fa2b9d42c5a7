// Chooses the connections that have to go so that none keeps the others out. Pure: times in, verdicts out;
// http_server.h has the rules in words.
#ifndef CLRSAMPLER_EXPORT_CONNECTION_TABLE_H_
#define CLRSAMPLER_EXPORT_CONNECTION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

struct ConnectionLimits {
  size_t connections = 256;
  size_t per_address = 32;
  uint64_t request_ns = 0;
  uint64_t answer_ns = 0;
  // One that waits shorter may have its request on the way: it is not made to leave for another one.
  uint64_t spared_ns = 1'000'000'000;
};

// Not thread-safe.
class ConnectionTable {
 public:
  using Id = uint64_t;
  struct Verdict {
    Id id;
    absl::string_view end;  // a word of kConnectionEnds
  };

  explicit ConnectionTable(const ConnectionLimits& limits) : limits_(limits) {}

  // `address` is empty for clients that are not counted by address: those on this host.
  Id Open(const std::string& address, uint64_t now_ns);
  void RequestComplete(Id id, uint64_t now_ns);
  void AnswerBegun(Id id, uint64_t now_ns);
  void AnswerTaken(Id id, uint64_t now_ns);
  // Says whether it ended of itself without ever having sent a whole request.
  bool Close(Id id);

  // Those that have to go now; each is told once.
  std::vector<Verdict> Judge(uint64_t now_ns);
  size_t size() const { return connections_.size(); }

 private:
  enum class Phase : uint8_t { kWaiting, kWorking, kSending };
  struct Connection {
    std::string address;
    Phase phase = Phase::kWaiting;
    uint64_t since_ns = 0;
    bool asked = false;
    bool judged = false;
  };
  void Enter(Id id, Phase phase, uint64_t now_ns);

  const ConnectionLimits limits_;
  Id next_ = 1;
  std::map<Id, Connection> connections_;  // in the order of their coming
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_CONNECTION_TABLE_H_
