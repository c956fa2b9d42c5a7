// The server of the service over made-up windows, for tests: no sampling, no root, no store.
//
// usage: export_host LISTEN [--window-ms N] [--max-processes N] [--short-lived N] [--processes N]
//                           [--textfile FOLDER]
//                           [--push URL] [--push-by process] [--push-header HEADER]
//                           [--otlp URL] [--otlp-by process] [--otlp-header HEADER] [--otlp-ca FILE]
//                           [--otlp-bytes N] [--otlp-seconds N]
//
// It prints "listening on ADDRESS" when it does. It makes a window every N ms (1000), with N processes that live in
// that window only and N that stay. It ends when its input ends, or with SIGTERM.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/endpoints.h"
#include "export/http_server.h"
#include "export/metrics.h"
#include "export/otlp_push.h"
#include "export/push_counts.h"
#include "export/pusher.h"
#include "export/pyroscope_push.h"
#include "export/textfile.h"
#include "status/status.h"
#include "unit/export/made_up_windows.h"

namespace {

using clrsampler::Endpoints;
using clrsampler::HttpServer;
using clrsampler::Metrics;

volatile sig_atomic_t ended = 0;

uint64_t Now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "error: %s\nhint: %s\n", std::string(status.message()).c_str(),
               clrsampler::HintOf(status).c_str());
  return 1;
}

// Window `number` of a host with a shop, a proxy, this process itself, and others that come and go.
std::shared_ptr<const clrsampler::Window> MakeWindow(uint64_t number, uint64_t begin, uint64_t end,
                                                     uint32_t short_lived, uint32_t lasting) {
  const uint64_t length = std::max<uint64_t>(end - begin, 1);
  clrsampler::test_support::WindowBuilder builder(number, begin, length);
  const size_t samples = static_cast<size_t>(length / clrsampler::test_support::kMadeUpSample);
  builder.Process(4711, "Shop", samples, true, "shop-web");
  builder.Pause(length / 2, 20'000'000, 1'000'000, static_cast<uint32_t>(number % 3));
  builder.Method("Shop.Order.Total()", "OptimizedTier1", 2, 5'000'000);
  builder.Process(static_cast<uint32_t>(getpid()), "export_host", samples / 2, false);
  builder.Process(99, "envoy \"\\\n\xff", samples / 3, false);
  for (uint32_t i = 0; i < lasting; ++i) {
    builder.Process(10'000 + i, absl::StrCat("Service", i), 1 + i % 5, true, absl::StrCat("service-", i));
    for (uint32_t generation = 0; generation < 3; ++generation) {
      builder.Pause(length / 2, 300'000 << (2 * generation), 30'000, generation);
    }
    for (const char* tier : {"QuickJitted", "OptimizedTier1", "Optimized"}) builder.Method("A.B()", tier, 1, 1'000'000);
  }
  for (uint32_t i = 0; i < short_lived; ++i) {
    builder.Process(static_cast<uint32_t>(100'000 + number * short_lived + i), absl::StrCat("job", i), 1, i % 2 == 0)
        .exited = true;
  }
  builder.window().account.self_cpu_seconds = 0.01;
  return builder.Build();
}

using Options = std::map<std::string, std::string>;

absl::Status StartPusher(std::unique_ptr<clrsampler::PushProtocol> protocol, const clrsampler::PosterOptions& posting,
                         clrsampler::RecentWindows& windows, clrsampler::PushObserver observer,
                         std::vector<std::unique_ptr<clrsampler::Pusher>>& pushers) {
  absl::StatusOr<std::unique_ptr<clrsampler::HttpPoster>> poster = clrsampler::MakeCurlPoster(posting);
  if (!poster.ok()) return poster.status();
  clrsampler::PushOptions push;
  push.first_wait = std::chrono::milliseconds(100);
  observer.said = [](const std::string& sentence) { std::fprintf(stderr, "%s\n", sentence.c_str()); };
  pushers.push_back(
      clrsampler::Pusher::Start(push, std::move(protocol), *std::move(poster), windows, std::move(observer)));
  return absl::OkStatus();
}

absl::Status StartPushers(Options options, clrsampler::RecentWindows& windows, Metrics& metrics,
                          std::vector<std::unique_ptr<clrsampler::Pusher>>& pushers) {
  if (options.contains("--push")) {
    clrsampler::PyroscopeOptions push;
    const absl::StatusOr<std::string> url = clrsampler::ParsePushUrl(options["--push"]);
    if (!url.ok()) return url.status();
    push.url = *url;
    push.labels = {{"host", "made-up"}};
    if (options["--push-by"] == "process") push.by = clrsampler::PushBy::kProcess;
    if (options.contains("--push-header")) push.headers = {options["--push-header"]};
    RETURN_IF_ERROR(StartPusher(clrsampler::MakePyroscopeProtocol(push), {}, windows,
                                clrsampler::PyroscopeCounts(metrics), pushers));
  }
  if (options.contains("--otlp")) {
    clrsampler::OtlpOptions otlp;
    const absl::StatusOr<clrsampler::OtlpEndpoint> endpoint = clrsampler::ParseOtlpUrl(options["--otlp"]);
    if (!endpoint.ok()) return endpoint.status();
    otlp.endpoint = *endpoint;
    otlp.host = "made-up";
    otlp.ca_file = options["--otlp-ca"];
    if (options["--otlp-by"] == "process") otlp.by = clrsampler::PushBy::kProcess;
    if (options.contains("--otlp-header")) otlp.headers = {options["--otlp-header"]};
    if (options.contains("--otlp-bytes"))
      otlp.request_bytes = std::strtoull(options["--otlp-bytes"].c_str(), nullptr, 10);
    clrsampler::PosterOptions posting = clrsampler::OtlpPosterOptions(otlp);
    if (options.contains("--otlp-seconds")) posting.transfer_seconds = std::atol(options["--otlp-seconds"].c_str());
    RETURN_IF_ERROR(
        StartPusher(clrsampler::MakeOtlpProtocol(otlp), posting, windows, clrsampler::OtlpCounts(metrics), pushers));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) return 2;
  Options options;
  for (int i = 2; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  const auto number_of = [&](const char* name, uint64_t fallback) {
    return options.contains(name) ? std::strtoull(options[name].c_str(), nullptr, 10) : fallback;
  };
  const uint64_t window_ns = number_of("--window-ms", 1000) * 1'000'000;
  const auto short_lived = static_cast<uint32_t>(number_of("--short-lived", 0));
  const auto lasting = static_cast<uint32_t>(number_of("--processes", 0));

  absl::StatusOr<clrsampler::ListenAddress> listen = clrsampler::ParseListenAddress(argv[1]);
  if (!listen.ok()) return Fail(listen.status());
  struct sigaction action = {};
  action.sa_handler = [](int) { ended = 1; };
  sigaction(SIGTERM, &action, nullptr);

  clrsampler::MetricsOptions metrics_options;
  metrics_options.version = "test";
  metrics_options.max_processes = number_of("--max-processes", 50);
  const std::unique_ptr<Metrics> metrics = Metrics::Make(metrics_options);
  clrsampler::RecentWindows windows(64);
  std::atomic<uint64_t> cut = 0;

  clrsampler::EndpointParts parts;
  parts.version = "test";
  parts.host = "made-up";
  parts.cpus = 2;
  parts.started_unix_ns = Now();
  parts.window_ns = window_ns;
  parts.access.anonymous = true;
  parts.windows = &windows;
  parts.metrics = [&] { return metrics->Text(true); };
  parts.asset = [](absl::string_view path) -> std::optional<clrsampler::PageAsset> {
    if (path == "/") return clrsampler::PageAsset{"text/html; charset=utf-8", "<!doctype html><title>page</title>"};
    return std::nullopt;
  };
  parts.want_cut = [&](uint64_t at) { cut = at; };
  Endpoints endpoints(std::move(parts));

  clrsampler::HttpServerOptions server_options;
  server_options.listen = *listen;
  clrsampler::HttpServerObserver observer;
  observer.answered = [&](const std::string& endpoint, unsigned status, double) {
    metrics->CountRequest(endpoint, status);
  };
  observer.connection_ended = [&](absl::string_view end) { metrics->CountConnectionEnd(end); };
  const absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(
      server_options,
      [&](const clrsampler::HttpRequest& request, clrsampler::HttpReply reply) {
        endpoints.Handle(request, std::move(reply));
      },
      observer);
  if (!server.ok()) return Fail(server.status());
  const clrsampler::ListenAddress& address = (*server)->address();
  std::printf("listening on %s\n",
              address.is_unix() ? address.path.c_str() : absl::StrCat(address.host(), ":", address.port).c_str());
  std::fflush(stdout);

  std::vector<std::unique_ptr<clrsampler::Pusher>> pushers;
  const absl::Status pushing = StartPushers(options, windows, *metrics, pushers);
  if (!pushing.ok()) return Fail(pushing);

  uint64_t begin = Now();
  for (uint64_t number = 1; ended == 0;) {
    const uint64_t wanted = cut.load();
    const uint64_t end = wanted > begin ? std::min(wanted, begin + window_ns) : begin + window_ns;
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, 20) > 0) {
      char byte;
      if (read(STDIN_FILENO, &byte, 1) <= 0) break;
    }
    if (Now() < end) continue;
    const auto window = MakeWindow(number++, begin, end, short_lived, lasting);
    begin = end;
    metrics->Observe(*window);
    windows.Add(window);
    if (!options.contains("--textfile")) continue;
    const absl::Status written = clrsampler::WriteTextfile(options["--textfile"], metrics->Text(false));
    if (!written.ok()) return Fail(written);
  }
  windows.Close();
  return 0;
}
