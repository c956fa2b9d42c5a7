// One way to get a symbol file from a server.
#ifndef CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FETCHER_H_
#define CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FETCHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "symbol_server/symbol_keys.h"

namespace clrsampler {

// What a server may cost us. A run never waits for any of it: it ends the fetching process.
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

// Blocks. Runs in the fetching process (fetch_process.h), so nothing in it has to be trusted to end.
class SymbolFetcher {
 public:
  virtual ~SymbolFetcher() = default;

  // In how many places of such a server the file may be: 0 where the server or the file is not for this protocol.
  virtual size_t Places(const SymbolServerUrl& server, const SymbolFileKey& key) const = 0;

  // Receives the file at place `place` into `path`, which lies in an empty folder of ours and does not exist.
  virtual FetchOutcome Fetch(const SymbolServerUrl& server, const SymbolFileKey& key, size_t place,
                             const std::string& path) = 0;
};

// elfutils' client library. Unavailable: it is not installed here, or this program was built without it.
// `work_folder`: where it keeps files while they arrive.
absl::StatusOr<std::unique_ptr<SymbolFetcher>> MakeDebuginfodFetcher(const FetchLimits& limits,
                                                                     const std::string& work_folder);

// The Simple Symbol Query Protocol over libcurl. Unavailable likewise.
absl::StatusOr<std::unique_ptr<SymbolFetcher>> MakeSsqpFetcher(const FetchLimits& limits);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_SYMBOL_FETCHER_H_
