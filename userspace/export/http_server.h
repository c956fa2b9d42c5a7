// An HTTP server for a few local clients, which no client can wear down: libmicrohttpd with limits around it.
//
//   connections    at most `connections` at once. When one more comes, the one that has waited longest without a
//                  complete request goes, or where none waits the one that takes its answer most slowly. So slow ones
//                  never keep others out. From other hosts at most `connections_per_address` each.
//   requests       GET and HEAD without a body, heads of at most some 15 KiB, complete within `request_seconds` of the
//                  connection's or the last answer's end, however the bytes trickle in
//   answers        taken within `answer_seconds`, and together at most `unsent_bytes` that clients have not taken yet,
//   half
//                  of it by one client
//   CPU time       of the threads below, at most `cpu` in the long run: beyond, they pause between two steps, so that
//                  whoever floods the server waits with all others, and does not cost the host more
//   TLS            the handshake is part of the first request's time, and does not hold up other connections
//
// Threads: two of libmicrohttpd's that serve all connections, and one that watches the clock. The handler is called on
// the first two; an answer may come later from any thread. Signals are blocked on all of them.
//
// The library is opened at run time: it brings ten others with it, which would cost every other command a
// millisecond at its start.
#ifndef CLRSAMPLER_EXPORT_HTTP_SERVER_H_
#define CLRSAMPLER_EXPORT_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "export/cpu_bucket.h"
#include "export/http_message.h"
#include "export/listen_address.h"

namespace clrsampler {

// Texts of PEM files.
struct TlsIdentity {
  std::string certificates;  // our own first, then those that lead to the authority's
  std::string key;
};

struct HttpServerOptions {
  ListenAddress listen;
  std::optional<TlsIdentity> tls;
  unsigned connections = 256;
  unsigned connections_per_address = 32;
  unsigned request_seconds = 10;
  unsigned answer_seconds = 60;
  size_t unsent_bytes = size_t{16} << 20;
  CpuAllowance cpu = {.share = 0.045, .burst_ns = 200'000'000};
};

// The fates of connections and requests, for metrics. Called from the server's threads.
struct HttpServerObserver {
  // After the last byte of the answer, or when the client was gone before that.
  std::function<void(const std::string& endpoint, unsigned status, double seconds)> answered;
  // One that ended otherwise; a word of kConnectionEnds.
  std::function<void(absl::string_view end)> connection_ended;
};
inline constexpr absl::string_view kConnectionEnds[] = {
    "evicted",       // it had to make room for another one
    "slow_request",  // no complete request in time
    "slow_client",   // it did not take its answer in time
    "address_limit",
    "no_request",  // closed by the client, or malformed, before a request was complete
};

class HttpServer {
 public:
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options, HttpHandler handler,
                                                           HttpServerObserver observer);
  // Ends all connections; replies that come later do nothing.
  virtual ~HttpServer() = default;

  virtual const ListenAddress& address() const = 0;  // with the real port
  virtual size_t connections() const = 0;            // now
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_HTTP_SERVER_H_
