// Symbol files from servers, kept on disk for the next run.
//
// One folder that only its owner may write to: CacheFileName of a key is the file, the same with the servers' number,
// a digest of the key's RequestText and ".missing" says that they did not have it. The fetching process writes into a
// file that the agent has made and opened; the agent names it when it has seen that nobody can write to it any more. A
// reader never sees half of a file, and several runs may share the folder. A file that is deleted while it is mapped
// stays readable.
#ifndef CLRSAMPLER_SYMBOL_SERVER_SYMBOL_CACHE_H_
#define CLRSAMPLER_SYMBOL_SERVER_SYMBOL_CACHE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"
#include "symbol_server/symbol_keys.h"

namespace clrsampler {

// For one thread of one process; each process opens its own.
class SymbolCache {
 public:
  struct Options {
    uint64_t max_bytes = uint64_t{4} << 30;
    int64_t missing_seconds = 24 * 60 * 60;    // how long a server's "not here" is believed
    int64_t abandoned_seconds = 24 * 60 * 60;  // after which the unfinished file of a run that died is deleted
    std::function<int64_t()> now = nullptr;    // seconds since 1970, the clock of file times; nullptr: the system's
  };

  // Makes the folder where it is missing, and those above it. PermissionDenied: others may write to it.
  static absl::StatusOr<SymbolCache> Open(const std::string& folder, Options options);
  // /var/cache/clrsampler/symbols for root, else below $XDG_CACHE_HOME or ~/.cache; empty: none of them is set.
  static std::string DefaultFolder();

  // Opens the file and marks it as used now.
  std::optional<UniqueFd> Find(const SymbolFileKey& key) const;
  // An empty file for what process `pid` receives, open for reading and writing. The one before it is deleted.
  absl::StatusOr<UniqueFd> BeginFile(pid_t pid) const;
  // Opens it to look into it. FailedPrecondition: somebody has it open for writing.
  absl::StatusOr<UniqueFd> OpenReceived(pid_t pid) const;
  // Gives it its name in the cache; then deletes what was not used for longest.
  absl::Status Adopt(pid_t pid, const SymbolFileKey& key);
  void DropFile(pid_t pid) const;
  void Discard(const SymbolFileKey& key);

  // "Not here" holds for the servers that were asked: others may have the file.
  bool IsMissing(const SymbolFileKey& key, uint64_t servers) const;
  void NoteMissing(const SymbolFileKey& key, uint64_t servers);
  static uint64_t NumberOf(std::span<const SymbolServerUrl> servers);

  // Deletes expired entries, abandoned files, and files from the one that was not used for longest until the
  // rest fits. Open does it too.
  void Evict();

  const std::string& folder() const { return folder_; }
  const Options& options() const { return options_; }

 private:
  std::string PathOf(absl::string_view name) const;

  std::string folder_;
  UniqueFd fd_;
  Options options_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_SYMBOL_CACHE_H_
