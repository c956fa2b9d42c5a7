// The endpoints of the server: docs/http-api.md. Asks the history and the recent windows, and turns what they say into
// answers.
//
// Nothing here changes anything. Errors are JSON with a sentence and a hint. Answers that take long run on a thread of
// their own and within a budget. /metrics, /-/ready, /-/healthy, the page and its assets are answered at once.
#ifndef CLRSAMPLER_EXPORT_ENDPOINTS_H_
#define CLRSAMPLER_EXPORT_ENDPOINTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "export/access.h"
#include "export/flight_recordings.h"
#include "export/http_guard.h"
#include "export/http_message.h"
#include "export/live_profile.h"
#include "export/query.h"
#include "export/query_budget.h"
#include "export/query_workers.h"
#include "export/recent_windows.h"
#include "store/history.h"

namespace clrsampler {

// A file of the page, which is part of the program.
struct PageAsset {
  absl::string_view content_type;
  absl::string_view bytes;
};

// Borrowed things live longer than the server.
struct EndpointParts {
  std::string version;
  std::string host;
  unsigned cpus = 0;
  uint64_t started_unix_ns = 0;
  uint64_t window_ns = 10'000'000'000;
  uint32_t frequency_hz = 0;  // until a window says it
  HostPolicy hosts;
  AccessPolicy access;
  QueryLimits queries;

  History* history = nullptr;  // nullptr: only the recent windows are known
  uint64_t store_max_bytes = 0;
  RecentWindows* windows = nullptr;
  FlightRecordings* recordings = nullptr;  // nullptr: there is no flight recorder

  std::function<std::string()> metrics;                                   // text for Prometheus; empty: none
  std::function<std::optional<PageAsset>(absl::string_view path)> asset;  // "/" and "/assets/..."; empty: no page
  std::function<bool()> ready;                       // sampling has begun; empty: a window has come
  std::function<bool()> healthy;                     // the loop that samples goes on; empty: always
  std::function<void(uint64_t unix_ns)> want_cut;    // as LiveProfiles has it; may be empty
  std::function<bool(uint32_t pid)> process_exists;  // empty: looks into /proc
  std::function<uint64_t()> now_unix_ns;             // empty: the system's clock
};

class Endpoints {
 public:
  explicit Endpoints(EndpointParts parts);
  ~Endpoints();

  // A HttpHandler; the answer may come later.
  void Handle(const HttpRequest& request, HttpReply reply);

 private:
  using Job = std::function<absl::StatusOr<HttpAnswer>()>;

  absl::StatusOr<Job> MakeJob(const RequestTarget& target, const std::string& route, uint64_t now_unix_ns);
  absl::StatusOr<Job> ProfileJob(QueryReader& reader);
  absl::StatusOr<Job> DiffJob(QueryReader& reader);
  absl::StatusOr<Job> TimelineJob(QueryReader& reader);
  absl::StatusOr<Job> LanesJob(QueryReader& reader);
  absl::StatusOr<Job> ProcessesJob(QueryReader& reader);
  absl::StatusOr<Job> RecordingJob(QueryReader& reader, const std::string& id);
  absl::StatusOr<HttpAnswer> Status(uint64_t now_unix_ns);
  void LiveProfile(const HttpRequest& request, const RequestTarget& target, ProfileView view, uint64_t now_unix_ns,
                   const HttpReply& reply);
  HttpAnswer Metrics(const HttpRequest& request, const RequestTarget& target);
  HttpAnswer Ready(const RequestTarget& target) const;
  HttpAnswer Healthy(const RequestTarget& target) const;
  HttpAnswer Asset(const HttpRequest& request, const std::string& path) const;

  const EndpointParts parts_;
  const Access access_;
  std::unique_ptr<History> recent_;  // where there is no other
  History& history_;

  // The assets of the page, each compressed once.
  struct KeptAsset {
    std::shared_ptr<const std::string> plain, packed;
  };
  mutable std::mutex assets_mutex_;
  mutable std::map<std::string, KeptAsset> assets_;

  std::mutex metrics_mutex_;  // the server's threads: many may scrape at once
  uint64_t metrics_at_ns_ = 0;
  std::shared_ptr<const std::string> metrics_, packed_metrics_;

  QueryWorkers workers_;  // after what its jobs use
  LiveProfiles live_;     // has the budget of the workers
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_ENDPOINTS_H_
