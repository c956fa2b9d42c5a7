#include "os/http_poster.h"

#ifdef CLRSAMPLER_HAVE_CURL
#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "os/curl_library.h"
#endif

#include "status/status.h"

namespace clrsampler {

#ifdef CLRSAMPLER_HAVE_CURL
namespace {

constexpr long kLongestRetrySeconds = 600;
// The most fields of an answer that are kept.
constexpr size_t kMostFields = 16;
constexpr size_t kMostFieldBytes = size_t{8} << 10;

// The answer, within bounds.
struct Received {
  const PosterOptions& options;
  PostOutcome& outcome;
};

size_t ReceiveBody(char* data, size_t size, size_t count, void* user) {
  const Received& received = *static_cast<Received*>(user);
  std::string& answer = received.outcome.answer;
  const size_t room = received.options.answer_bytes - answer.size();
  const size_t bytes = size * count;
  answer.append(data, std::min(bytes, room));
  received.outcome.cut = bytes > room;
  return received.outcome.cut ? 0 : bytes;  // 0 ends the transfer
}

// A line of the head or of the trailers.
size_t ReceiveField(char* data, size_t size, size_t count, void* user) {
  const Received& received = *static_cast<Received*>(user);
  const absl::string_view line(data, size * count);
  std::map<std::string, std::string>& fields = received.outcome.fields;
  if (absl::StartsWith(line, "HTTP/")) fields.clear();  // an answer before the final one
  const size_t colon = line.find(':');
  if (received.options.field_prefix.empty() || colon == absl::string_view::npos) return line.size();
  std::string name = absl::AsciiStrToLower(line.substr(0, colon));
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (absl::StartsWith(name, received.options.field_prefix) && fields.size() < kMostFields &&
      name.size() + value.size() <= kMostFieldBytes) {
    fields[std::move(name)] = std::string(value);
  }
  return line.size();
}

// This is asked about once a second, and after each piece. A value other than 0 ends the request.
int MayGoOn(void* cancelled, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(cancelled)->load() ? 1 : 0;
}

long VersionOf(HttpForm form) {
  switch (form) {
    case HttpForm::kHttp2Plain:
      return CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    case HttpForm::kHttp2Tls:
      return CURL_HTTP_VERSION_2TLS;
    case HttpForm::kAny:
      break;
  }
  return CURL_HTTP_VERSION_NONE;
}

class CurlPoster : public HttpPoster {
 public:
  CurlPoster(const CurlLibrary& curl, CURL* handle, const PosterOptions& options)
      : curl_(curl), handle_(handle), options_(options) {}
  ~CurlPoster() override { curl_.easy_cleanup(handle_); }

  PostOutcome Post(const std::string& url, const std::vector<std::string>& headers, absl::string_view body) override {
    PostOutcome outcome;
    Received received{options_, outcome};
    curl_slist* list = curl_.slist_append(nullptr, "Expect:");  // no question before the body
    for (const std::string& header : headers) list = curl_.slist_append(list, header.c_str());
    good_ = list != nullptr;
    SetRequest(url, list, body);
    SetLimits();
    Set(CURLOPT_WRITEFUNCTION, &ReceiveBody);
    Set(CURLOPT_WRITEDATA, static_cast<void*>(&received));
    Set(CURLOPT_HEADERFUNCTION, &ReceiveField);
    Set(CURLOPT_HEADERDATA, static_cast<void*>(&received));
    if (cancelled_) {
      outcome.error = "cancelled";
    } else if (good_) {
      Perform(outcome);
    } else {
      outcome.error = "libcurl is too old";
    }
    curl_.easy_setopt(handle_, CURLOPT_HTTPHEADER, nullptr);
    curl_.slist_free_all(list);
    return outcome;
  }
  void Cancel() override { cancelled_ = true; }

 private:
  template <typename Value>
  void Set(CURLoption option, Value value) {
    good_ = curl_.easy_setopt(handle_, option, value) == CURLE_OK && good_;
  }

  void SetRequest(const std::string& url, curl_slist* headers, absl::string_view body) {
    Set(CURLOPT_URL, url.c_str());
    Set(CURLOPT_HTTP_VERSION, VersionOf(options_.form));
    // libcurl 7.87 to 7.88 (Debian 12) can't use such a connection again: curl#10634.
    if (options_.form == HttpForm::kHttp2Plain) Set(CURLOPT_FORBID_REUSE, 1L);
    Set(CURLOPT_USERAGENT, "clrsampler");
    Set(CURLOPT_HTTPHEADER, headers);
    Set(CURLOPT_POST, 1L);
    Set(CURLOPT_POSTFIELDS, body.data());
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    // The numbered form: the library at run time may be older than the named one (7.85).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    Set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTPS | CURLPROTO_HTTP));
#pragma GCC diagnostic pop
    if (!options_.unix_socket.empty()) {
      Set(CURLOPT_UNIX_SOCKET_PATH, options_.unix_socket.c_str());
      Set(CURLOPT_PROXY, "");  // the environment may name one
    }
    Set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    Set(CURLOPT_SSL_VERIFYPEER, 1L);
    Set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!options_.ca_file.empty()) Set(CURLOPT_CAINFO, options_.ca_file.c_str());
  }

  void SetLimits() {
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT, options_.connect_seconds);
    Set(CURLOPT_TIMEOUT, options_.transfer_seconds);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &MayGoOn);
    Set(CURLOPT_XFERINFODATA, static_cast<void*>(&cancelled_));
#if LIBCURL_VERSION_NUM >= 0x075700
    // Nobody waits for a name server that does not answer; an older library at run time has no such option, and waits.
    (void)curl_.easy_setopt(handle_, CURLOPT_QUICK_EXIT, 1L);
#endif
  }

  void Perform(PostOutcome& outcome) const {
    const CURLcode code = curl_.easy_perform(handle_);
    long status = 0;
    curl_off_t retry = 0;
    curl_.easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    curl_.easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &retry);
    if (code == CURLE_OK || outcome.cut) {
      outcome.status = static_cast<unsigned>(status);
      outcome.retry_after = std::chrono::seconds(std::clamp<curl_off_t>(retry, 0, kLongestRetrySeconds));
    } else {
      outcome.error = curl_.easy_strerror(code);
    }
  }

  const CurlLibrary curl_;
  CURL* const handle_;  // keeps the connection from one request to the next, where that works
  const PosterOptions options_;
  bool good_ = true;  // libcurl knows every option of the request
  std::atomic<bool> cancelled_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpPoster>> MakeCurlPoster(const PosterOptions& options) {
  CurlLibrary curl;
  CURL* handle = nullptr;
  if (curl.Load() && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) handle = curl.easy_init();
  constexpr char kHint[] = "install libcurl4 or libcurl3-gnutls (Debian), libcurl (Fedora)";
  if (handle == nullptr) {
    return WithHint(absl::UnavailableError("libcurl is not installed: no server can be asked"), kHint);
  }
  if (curl.easy_setopt(handle, CURLOPT_HTTP_VERSION, VersionOf(options.form)) != CURLE_OK) {
    curl.easy_cleanup(handle);
    return WithHint(absl::UnavailableError("this libcurl speaks no HTTP/2, which gRPC needs"), kHint);
  }
  return std::unique_ptr<HttpPoster>(std::make_unique<CurlPoster>(curl, handle, options));
}

#else

absl::StatusOr<std::unique_ptr<HttpPoster>> MakeCurlPoster(const PosterOptions&) {
  return WithHint(absl::UnavailableError("this program was built without libcurl: no server can be asked"),
                  "install the package, whose program is not static");
}

#endif

}  // namespace clrsampler
