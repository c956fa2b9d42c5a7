// The work of the fetching process for one order: ask the servers in turn, and look into what comes.
#ifndef CLRSAMPLER_SYMBOL_SERVER_FETCH_WORKER_H_
#define CLRSAMPLER_SYMBOL_SERVER_FETCH_WORKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "symbol_server/symbol_fetcher.h"
#include "symbol_server/symbol_keys.h"

namespace clrsampler {

enum class OrderResult : uint8_t {
  kReceived,  // it is in the descriptor that came with the order
  kMissing,   // every server that was asked says that it does not have it
  kRejected,  // a server sent something else; no other had it
  kFailed,    // a server could not be asked; no other had it
};

struct OrderReply {
  uint64_t number = 0;
  OrderResult result = OrderResult::kFailed;
  uint64_t bytes = 0;     // of the file
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
  FetchWorker(std::vector<SymbolServerUrl> servers, std::unique_ptr<SymbolFetcher> fetcher);

  // `file`: open for reading and writing; what is in it is overwritten.
  OrderReply Do(uint64_t number, const SymbolFileKey& key, int file);

  // A server that gave no answer this often in a row is not asked again by this run.
  static constexpr int kMaxUnreachable = 3;

 private:
  struct Server {
    SymbolServerUrl url;
    int unreachable = 0;
  };
  // True: the search is over.
  bool Ask(Server& server, const std::string& path, const SymbolFileKey& key, int file, OrderReply& reply);

  std::vector<Server> servers_;
  const std::unique_ptr<SymbolFetcher> fetcher_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_FETCH_WORKER_H_
