// The differences between the servers that windows are pushed to: how a window is written, how it is sent, and what the
// answers mean. The queue, the pauses between attempts and the thread are Pusher's (pusher.h).
#ifndef CLRSAMPLER_EXPORT_PUSH_PROTOCOL_H_
#define CLRSAMPLER_EXPORT_PUSH_PROTOCOL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "os/http_poster.h"
#include "profile/window.h"

namespace clrsampler {

// One request, ready to be sent.
struct PushMessage {
  std::string url;
  std::vector<std::string> headers;
  std::string body;
  size_t bytes = 0;      // of profiles: what counters say
  uint64_t samples = 0;  // of CPU time, where they are counted
  uint64_t profiles = 0;
};

// The result of encoding a window.
struct PushMessages {
  std::vector<PushMessage> messages;
  // Parts that are larger than the server takes, whatever is left out of them; and their samples.
  uint64_t too_large = 0, samples_too_large = 0;
};

enum class PushAnswer : uint8_t {
  kTaken,
  kUnreadable,  // taken by its status, but what is said about it can't be read
  kRefused,     // it is not sent again
  kPassing,     // it is worth another try: the server is not well, not the request
};

struct PushVerdict {
  PushAnswer answer = PushAnswer::kTaken;
  std::string why;  // in words; of kTaken what the server has to say besides, or nothing
  uint64_t rejected_profiles = 0;
  std::chrono::nanoseconds retry_after{0};  // that the server asks for, bounded; 0: it says nothing
};

// Used by one thread at a time.
class PushProtocol {
 public:
  virtual ~PushProtocol() = default;
  virtual absl::StatusOr<PushMessages> Encode(const Window& window) const = 0;
  virtual PushVerdict Judge(const PostOutcome& outcome) const = 0;
  // For messages to the operator.
  virtual std::string server() const = 0;
};

// The words of a server, in one line and in brackets, with a space before them; empty where it says nothing.
std::string QuotedAnswer(const std::string& answer);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_PUSH_PROTOCOL_H_
