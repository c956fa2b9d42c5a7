// Sends the profiles of each window to a server as they come, for hosts that nobody can scrape.
//
// A server that is slow or down costs bounded memory and no time of anybody else's. One thread encodes and sends, one
// request at a time. Requests that wait have at most `queue_bytes`, and the oldest goes first. After a failure
// everything waits, 1 s, 2 s, 4 s ... 60 s, each shortened by chance to half at most, so that a fleet does not come
// back as one. A request that the server refuses is not sent again.
//
// Every message ends as taken, unreadable or lost, so the samples of windows are those that were taken, lost, or wait.
#ifndef CLRSAMPLER_EXPORT_PUSHER_H_
#define CLRSAMPLER_EXPORT_PUSHER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "export/metrics.h"
#include "export/push_protocol.h"
#include "export/recent_windows.h"
#include "os/http_poster.h"

namespace clrsampler {

struct PushOptions {
  size_t queue_bytes = size_t{16} << 20;
  std::chrono::nanoseconds first_wait = std::chrono::seconds(1);
  std::chrono::nanoseconds longest_wait = std::chrono::seconds(60);
  std::chrono::nanoseconds oldest = std::chrono::hours(1);  // Pyroscope refuses what is older
};

// The messages that wait to be sent.
struct PushQueue {
  uint64_t requests = 0, bytes = 0, samples = 0;
};

// Members may be empty, but for `said`.
struct PushObserver {
  // Called at each attempt; where the server took the message, with bytes and samples.
  std::function<void(PushResult result, const PushMessage& message)> sent;
  std::function<void(PushLoss loss, uint64_t samples)> lost;
  // A window was written: with so many samples of CPU time.
  std::function<void(uint64_t samples)> taken;
  // Called for a request that the server took in part.
  std::function<void(uint64_t profiles)> rejected;
  std::function<void(const PushQueue& queue)> waiting;
  // A sentence, when sending begins to fail and when it works again, and what the server has to say.
  std::function<void(const std::string& sentence)> said;
};

class Pusher {
 public:
  // Takes windows out of `windows`, which is borrowed. A window that is gone before it was taken is counted as lost.
  static std::unique_ptr<Pusher> Start(const PushOptions& options, std::unique_ptr<PushProtocol> protocol,
                                       std::unique_ptr<HttpPoster> poster, RecentWindows& windows,
                                       PushObserver observer);
  // Messages that wait are lost and counted; a request under way is cancelled.
  virtual ~Pusher() = default;
};

// How long to wait after so many failures, 1 and up; `chance` from 0 to 1.
std::chrono::nanoseconds BackoffAfter(unsigned failures, const PushOptions& options, double chance);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_PUSHER_H_
