// How a symbol file comes from a server.
#ifndef CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FETCHER_H_
#define CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FETCHER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// The most that a server may cost us. A run never waits for any of it: it ends the fetching process.
struct FetchLimits {
  uint64_t file_bytes = uint64_t{1} << 30;  // libcoreclr.so.dbg has some 50 MB
  long connect_seconds = 10;
  long stall_seconds = 20;      // with less than 1 KB/s
  long transfer_seconds = 300;  // from the first to the last byte
  long redirects = 5;
};

enum class FetchResult : uint8_t {
  kFound,        // a file came; nobody has looked into it
  kMissing,      // the server says that it does not have it
  kFailed,       // it answered, but not in a way that helps: an error status, too large, too slow
  kUnreachable,  // no answer at all
};

struct FetchOutcome {
  FetchResult result = FetchResult::kMissing;
  std::string detail;  // of a failure, for people
};

// Blocks. Runs in the fetching process (sandbox/helper_process.h), so nothing in it has to be trusted to end.
class SymbolFetcher {
 public:
  virtual ~SymbolFetcher() = default;

  // Writes what the address has into `file`, which is empty. `header`: "NAME: VALUE" for the server; empty: none.
  virtual FetchOutcome Fetch(const std::string& url, const std::string& header, int file) = 0;
};

// Over libcurl: debuginfod and SSQP are both one GET. Unavailable: it is not installed here, or this program was built
// without it. libdebuginfod would be another way, but it keeps files in folders of its own, and its process writes
// none.
absl::StatusOr<std::unique_ptr<SymbolFetcher>> MakeCurlFetcher(const FetchLimits& limits);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FETCHER_H_
