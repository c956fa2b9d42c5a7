// The continuous mode: samples the host for as long as it runs, keeps its history, and answers questions.
//
//   Recorder ──windows──► RecentWindows ──► WindowWriter: metrics, flight recordings, history
//                              ├──► pushing
//                              └──► HTTP server
//
// The recorder's loop is the thread that calls Serve. All others take windows at their own pace; a reader that is too
// slow misses some, which is counted.
#ifndef CLRSAMPLER_SERVE_SERVICE_H_
#define CLRSAMPLER_SERVE_SERVICE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "export/access.h"
#include "export/http_server.h"
#include "export/listen_address.h"
#include "export/otlp_push.h"
#include "export/pyroscope_push.h"
#include "pipeline/recorder.h"
#include "serve/flight_recorder.h"
#include "serve/process_selection.h"
#include "store/history.h"

namespace clrsampler {

struct ServeOptions {
  std::string version;
  RecordOptions record;  // frequency, names, hooks, buffers; `windows` is filled by Serve
  uint64_t window_ns = 10'000'000'000;
  bool allocations = true;        // what .NET programs allocate; by hooks, of which `record` says what they may cost
  bool waits = false;             // where threads wait; `record.min_wait_ns` has stacks
  bool reload_on_hangup = false;  // else SIGHUP ends it: the terminal is gone
  RateLimits limits;              // frequency_hz is that of `record`
  ProcessSelection selection;
  std::string history_path;  // its folder is made; empty: windows are kept in memory only, some minutes
  HistoryLimits history;
  FlightRecorderOptions flights;
  std::vector<ListenAddress> listen;            // none: no server
  AccessPolicy access;                          // over TCP
  bool show_link = false;                       // say the address with the first token in it
  std::optional<TlsIdentity> tls;               // of TCP
  std::vector<std::string> host_names;          // besides the usual ones that a client may call us by
  size_t max_processes = 50;                    // with series of their own
  std::string textfile_directory;               // for node_exporter; empty: none
  PyroscopeOptions push;                        // without a url nothing is sent
  OtlpOptions otlp;                             // the same
  std::function<void(const std::string&)> log;  // a line for the operator; main thread and others, one at a time
  std::function<void()> on_ready;               // sampling has begun; may be empty
};

enum class ServeEnd : uint8_t {
  kStopped,  // by a signal
  kReload,   // by SIGHUP: the options may have changed
};

// Until a signal comes. Errors before the first sample carry a hint; later ones are said in the log, and it goes on.
absl::StatusOr<ServeEnd> Serve(const ServeOptions& options);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SERVE_SERVICE_H_
