// A request and its answer as values: what the server (http_server.h) and what is served (endpoints.h) have in common.
#ifndef CLRSAMPLER_EXPORT_HTTP_MESSAGE_H_
#define CLRSAMPLER_EXPORT_HTTP_MESSAGE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// Header fields that are not there are empty. All bytes are the client's.
struct HttpRequest {
  std::string method;
  std::string target;         // as it was sent: "/api/profile?pid=4711"
  bool local_socket = false;  // came by a Unix socket: no browser did that
  bool tls = false;
  uint16_t port = 0;   // that we listen on; 0: of a Unix socket
  std::string client;  // whose budget it is: "ip 10.0.0.7", "uid 1000"
  std::string host;
  std::string authorization, cookie;
  std::string origin;
  std::string accept_encoding;
  std::string fetch_site, fetch_mode, fetch_dest;  // Sec-Fetch-*
};

struct HttpAnswer {
  unsigned status = 200;
  std::string content_type;
  // Shared, so that an answer which many ask for is kept once; never null.
  std::shared_ptr<const std::string> body = std::make_shared<const std::string>();
  std::vector<std::pair<std::string, std::string>> headers;
  // The route that answered, a word of a small fixed set, for counting: "/api/profile".
  std::string endpoint = "none";
};

// {"error": ..., "hint": ...}; the status code is that of the error's code.
HttpAnswer ErrorAnswer(const absl::Status& error);
// With the given code.
HttpAnswer ErrorAnswer(unsigned status, absl::string_view error, absl::string_view hint);
HttpAnswer TextAnswer(absl::string_view content_type, std::string body);

// Called once, on any thread, now or later.
using HttpReply = std::function<void(HttpAnswer)>;
// Must not take long: it runs on a thread that serves other connections as well.
using HttpHandler = std::function<void(const HttpRequest& request, HttpReply reply)>;

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_HTTP_MESSAGE_H_
