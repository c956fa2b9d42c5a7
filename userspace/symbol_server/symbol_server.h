// Symbol files from servers, for the main loop: cache first, then the fetching process.
#ifndef CLRSAMPLER_SYMBOL_SERVER_SYMBOL_SERVER_H_
#define CLRSAMPLER_SYMBOL_SERVER_SYMBOL_SERVER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "sandbox/helper_process.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbol_server/fetch_worker.h"
#include "symbol_server/symbol_cache.h"
#include "symbol_server/symbol_fetcher.h"
#include "symbol_server/symbol_files.h"

namespace clrsampler {

struct SymbolServerOptions {
  std::vector<SymbolServerUrl> servers;  // asked in this order; empty: off
  std::string cache_folder;              // empty: the default one
  SymbolCache::Options cache;
  FetchLimits limits;  // file_bytes is lowered to the cache's size
};

struct SymbolServerCounters {
  uint64_t wanted = 0;      // different files, or names of files
  uint64_t from_cache = 0;  // were there
  uint64_t fetched = 0;     // came from a server
  uint64_t fetched_bytes = 0;
  uint64_t missing = 0;     // no server has them, by an answer of this run or of a former one
  uint64_t rejected = 0;    // answers that were files of another build, or no symbol files at all
  uint64_t failed = 0;      // could not be had: no server answered well
  uint64_t unfinished = 0;  // not yet there when the run ended
  uint64_t not_asked = 0;   // beyond the limit of wanted files

  std::map<std::string, uint64_t> ByName() const;  // as in --stats
};

// Main loop only.
class SymbolServer : public SymbolFiles {
 public:
  // Starts the fetching process, so before any thread. Fails where the cache can't be used. That a library is not there
  // is a notice of the first Poll, and the cache is used all the same.
  static absl::StatusOr<std::unique_ptr<SymbolServer>> Start(SymbolServerOptions options);
  ~SymbolServer() override;

  Answer Get(const SymbolFileKey& key) override;
  uint64_t generation() const override { return generation_; }

  // Once an iteration: hands out orders, takes replies. Costs a system call.
  void Poll(Notices& notices);

  // The run is over: ends the fetching process, whatever it does.
  void Finish(Notices& notices);

  const SymbolServerCounters& counters() const { return counters_; }

  // A host has some thousand libraries; a target that maps made-up images without end gets no further.
  static constexpr size_t kMaxWanted = 4096;

 private:
  struct Wanted {
    SymbolFileKey key;
    State state = State::kWaiting;
    std::weak_ptr<const ImageFile> file;  // shared while a source uses it
  };

  SymbolServer(SymbolServerOptions options, SymbolCache cache, HelperProcess process);
  std::shared_ptr<const ImageFile> OpenCached(const SymbolFileKey& key);
  void Take(const OrderReply& reply, Notices& notices);
  void SendOrder(Notices& notices);
  absl::Status Adopt(const SymbolFileKey& key);
  void GiveUp();
  size_t OpenOrders() const;

  const SymbolServerOptions options_;
  SymbolCache cache_;
  HelperProcess process_;
  const pid_t process_pid_;
  const uint64_t servers_number_;
  std::vector<std::unique_ptr<Wanted>> wanted_;          // the number of an order is the place here
  absl::flat_hash_map<std::string, size_t> by_request_;  // RequestText
  std::deque<size_t> queue_;
  std::optional<size_t> at_work_;  // the order that the process has
  SymbolServerCounters counters_;
  uint64_t generation_ = 0;
  bool finished_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_SYMBOL_SERVER_H_
