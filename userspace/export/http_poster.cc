#include "export/http_poster.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "os/curl_library.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kAnswerBytes = 512;
constexpr long kLongestRetrySeconds = 600;

// Keeps the beginning, takes the rest.
size_t Receive(char* data, size_t size, size_t count, void* user) {
  auto* answer = static_cast<std::string*>(user);
  answer->append(data, std::min(size * count, kAnswerBytes - std::min(kAnswerBytes, answer->size())));
  return size * count;
}

// Asked about once a second, and after each piece; else than 0 ends the request.
int MayGoOn(void* cancelled, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(cancelled)->load() ? 1 : 0;
}

class CurlPoster : public HttpPoster {
 public:
  CurlPoster(CurlLibrary curl, CURL* handle, const PosterLimits& limits, std::string ca_file)
      : curl_(std::move(curl)), handle_(handle), limits_(limits), ca_file_(std::move(ca_file)) {}
  ~CurlPoster() override { curl_.easy_cleanup(handle_); }

  PostOutcome Post(const std::string& url, const std::vector<std::string>& headers, absl::string_view body) override {
    PostOutcome outcome;
    curl_slist* list = curl_.slist_append(nullptr, "Expect:");  // no question before the body
    for (const std::string& header : headers) list = curl_.slist_append(list, header.c_str());
    bool good = list != nullptr;
    const auto set = [&](CURLoption option, auto value) {
      good = curl_.easy_setopt(handle_, option, value) == CURLE_OK && good;
    };
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "clrsampler");
    set(CURLOPT_HTTPHEADER, list);
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_FOLLOWLOCATION, 0L);
    // The numbered form: the library at run time may be older than the named one (7.85).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTPS | CURLPROTO_HTTP));
#pragma GCC diagnostic pop
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!ca_file_.empty()) set(CURLOPT_CAINFO, ca_file_.c_str());
    set(CURLOPT_CONNECTTIMEOUT, limits_.connect_seconds);
    set(CURLOPT_TIMEOUT, limits_.transfer_seconds);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &MayGoOn);
    set(CURLOPT_XFERINFODATA, static_cast<void*>(&cancelled_));
#if LIBCURL_VERSION_NUM >= 0x075700
    // Nobody waits for a name server that does not answer; an older library at run time has no such option, and waits.
    (void)curl_.easy_setopt(handle_, CURLOPT_QUICK_EXIT, 1L);
#endif
    set(CURLOPT_WRITEFUNCTION, &Receive);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&outcome.answer));
    if (cancelled_) {
      outcome.error = "cancelled";
    } else if (good) {
      const CURLcode code = curl_.easy_perform(handle_);
      long status = 0;
      curl_off_t retry = 0;
      curl_.easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
      curl_.easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &retry);
      if (code == CURLE_OK) {
        outcome.status = static_cast<unsigned>(status);
        outcome.retry_after = std::chrono::seconds(std::clamp<curl_off_t>(retry, 0, kLongestRetrySeconds));
      } else {
        outcome.error = curl_.easy_strerror(code);
      }
    } else {
      outcome.error = "libcurl is too old";
    }
    curl_.easy_setopt(handle_, CURLOPT_HTTPHEADER, nullptr);
    curl_.slist_free_all(list);
    return outcome;
  }
  void Cancel() override { cancelled_ = true; }

 private:
  const CurlLibrary curl_;
  CURL* const handle_;  // keeps the connection from one request to the next
  const PosterLimits limits_;
  const std::string ca_file_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpPoster>> MakeCurlPoster(const PosterLimits& limits, const std::string& ca_file) {
  CurlLibrary curl;
  CURL* handle = nullptr;
  if (curl.Load() && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) handle = curl.easy_init();
  if (handle == nullptr) {
    return WithHint(absl::UnavailableError("libcurl is not installed: profiles can't be pushed"),
                    "install libcurl4 or libcurl3-gnutls (Debian), libcurl (Fedora)");
  }
  return std::unique_ptr<HttpPoster>(std::make_unique<CurlPoster>(std::move(curl), handle, limits, ca_file));
}

}  // namespace clrsampler
