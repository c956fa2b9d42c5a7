// What the fetching process does with one order: ask the servers in turn, look into what comes, put it into the cache.
#ifndef CLRSAMPLER_SYMBOL_SERVER_FETCH_WORKER_H_
#define CLRSAMPLER_SYMBOL_SERVER_FETCH_WORKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "symbol_server/symbol_cache.h"
#include "symbol_server/symbol_fetcher.h"
#include "symbol_server/symbol_keys.h"

namespace clrsampler {

enum class OrderResult : uint8_t {
  kStored,    // it is in the cache
  kMissing,   // every server that was asked says that it does not have it
  kRejected,  // a server sent something else; no other had it
  kFailed,    // a server could not be asked; no other had it
};

struct OrderReply {
  uint64_t number = 0;
  OrderResult result = OrderResult::kFailed;
  uint64_t bytes = 0;     // of the stored file
  uint64_t rejected = 0;  // files that were received and not the ones asked for
  uint64_t failures = 0;  // requests that failed
  std::string detail;     // the last failure or rejection: "https://host: it is too slow"
};

// Orders and replies as the text of one datagram each. nullopt: not such a text (the other side is not believed).
std::string OrderText(uint64_t number, const SymbolFileKey& key);
std::optional<std::pair<uint64_t, SymbolFileKey>> ParseOrder(absl::string_view text);
std::string ReplyText(const OrderReply& reply);
std::optional<OrderReply> ParseReply(absl::string_view text);

class FetchWorker {
 public:
  // `work_folder` is empty and on the cache's file system.
  FetchWorker(std::vector<SymbolServerUrl> servers, std::vector<std::unique_ptr<SymbolFetcher>> fetchers,
              SymbolCache cache, std::string work_folder);

  OrderReply Do(uint64_t number, const SymbolFileKey& key);

  // A server that gave no answer this often in a row is not asked again by this run.
  static constexpr int kMaxUnreachable = 3;

 private:
  struct Server {
    SymbolServerUrl url;
    int unreachable = 0;
  };
  // True: the search is over.
  bool Ask(Server& server, SymbolFetcher& fetcher, const SymbolFileKey& key, OrderReply& reply);

  std::vector<Server> servers_;
  std::vector<std::unique_ptr<SymbolFetcher>> fetchers_;
  SymbolCache cache_;
  const std::string work_folder_;
  const uint64_t servers_number_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_FETCH_WORKER_H_
