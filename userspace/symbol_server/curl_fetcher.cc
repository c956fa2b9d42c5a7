#include "symbol_server/symbol_fetcher.h"

#ifdef CLRSAMPLER_HAVE_CURL
#include <curl/curl.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "os/curl_library.h"
#include "os/file_io.h"
#endif

#include "status/status.h"

namespace clrsampler {

#ifdef CLRSAMPLER_HAVE_CURL
namespace {

struct Receiver {
  int fd = -1;
  uint64_t bytes_left = 0;
  std::string error;
};

size_t Receive(char* data, size_t size, size_t count, void* user) {
  auto* receiver = static_cast<Receiver*>(user);
  const size_t bytes = size * count;
  if (bytes > receiver->bytes_left) {
    receiver->error = "the file is larger than allowed";
    return 0;
  }
  receiver->bytes_left -= bytes;
  if (const absl::Status written = WriteAll(receiver->fd, absl::string_view(data, bytes)); !written.ok()) {
    receiver->error = std::string(written.message());
    return 0;
  }
  return bytes;
}

class CurlFetcher : public SymbolFetcher {
 public:
  CurlFetcher(const FetchLimits& limits, const CurlLibrary& curl) : limits_(limits), curl_(curl) {}

  FetchOutcome Fetch(const std::string& url, const std::string& header, int file) override {
    const std::unique_ptr<CURL, decltype(curl_easy_cleanup)*> handle(curl_.easy_init(), curl_.easy_cleanup);
    if (handle == nullptr) return {FetchResult::kFailed, "libcurl has no memory"};
    Receiver receiver{file, limits_.file_bytes, ""};
    const std::unique_ptr<curl_slist, decltype(curl_slist_free_all)*> headers(
        header.empty() ? nullptr : curl_.slist_append(nullptr, header.c_str()), curl_.slist_free_all);
    if (!SetUp(handle.get(), url, headers.get(), receiver)) return {FetchResult::kFailed, "libcurl is too old"};
    const CURLcode code = curl_.easy_perform(handle.get());
    long status = 0;
    curl_.easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && status == 200) return {FetchResult::kFound, ""};
    if (status == 404 || status == 410) return {FetchResult::kMissing, ""};
    if (!receiver.error.empty()) return {FetchResult::kFailed, receiver.error};
    if (code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR) {
      return {FetchResult::kFailed, absl::StrCat("it answers with HTTP status ", status)};
    }
    return {status == 0 ? FetchResult::kUnreachable : FetchResult::kFailed, curl_.easy_strerror(code)};
  }

 private:
  bool SetUp(CURL* handle, const std::string& url, curl_slist* headers, Receiver& receiver) const {
    bool good = true;
    const auto set = [&](CURLoption option, auto value) {
      good = curl_.easy_setopt(handle, option, value) == CURLE_OK && good;
    };
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "clrsampler");
    set(CURLOPT_FAILONERROR, 1L);
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, limits_.redirects);
    // The numbered forms: the library at run time may be older than the named ones (7.85). A server on https can't lead
    // to one without.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const bool tls = absl::StartsWith(url, "https://");
    set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTPS | CURLPROTO_HTTP));
    set(CURLOPT_REDIR_PROTOCOLS, static_cast<long>(tls ? CURLPROTO_HTTPS : CURLPROTO_HTTPS | CURLPROTO_HTTP));
#pragma GCC diagnostic pop
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_CONNECTTIMEOUT, limits_.connect_seconds);
    set(CURLOPT_TIMEOUT, limits_.transfer_seconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1024L);
    set(CURLOPT_LOW_SPEED_TIME, limits_.stall_seconds);
    set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits_.file_bytes));
    set(CURLOPT_WRITEFUNCTION, &Receive);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&receiver));
    return good;
  }

  const FetchLimits limits_;
  const CurlLibrary curl_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SymbolFetcher>> MakeCurlFetcher(const FetchLimits& limits) {
  CurlLibrary curl;
  if (!curl.Load() || curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return WithHint(absl::UnavailableError("libcurl is not installed: symbol servers can't be asked"),
                    "install libcurl4 or libcurl3-gnutls (Debian), libcurl (Fedora)");
  }
  return std::unique_ptr<SymbolFetcher>(std::make_unique<CurlFetcher>(limits, curl));
}

#else

absl::StatusOr<std::unique_ptr<SymbolFetcher>> MakeCurlFetcher(const FetchLimits&) {
  return absl::UnavailableError("this program was built without libcurl: symbol servers can't be asked");
}

#endif

}  // namespace clrsampler
