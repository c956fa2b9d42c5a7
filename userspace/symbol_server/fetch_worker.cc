#include "symbol_server/fetch_worker.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "os/file_io.h"
#include "os/mapped_file.h"
#include "process/image_files.h"
#include "symbol_server/symbol_check.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxDetailBytes = 1000;

bool IsLowerHex(absl::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
  });
}

// One line, whatever a server or a library put into it.
std::string Line(absl::string_view text) {
  std::string line(text.substr(0, kMaxDetailBytes));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return line;
}

absl::StatusOr<uint64_t> CheckFile(const SymbolFileKey& key, const std::string& path) {
  const absl::StatusOr<UniqueFd> fd = OpenForReading(path);
  if (!fd.ok()) return fd.status();
  const absl::StatusOr<MappedFile> file = MappedFile::Map(fd->get(), 0, 0, ImageFiles::kMaxImageBytes);
  if (!file.ok()) return file.status();
  if (const absl::Status checked = CheckSymbolFile(key, file->bytes()); !checked.ok()) return checked;
  return file->bytes().size();
}

}  // namespace

std::string OrderText(uint64_t number, const SymbolFileKey& key) {
  return absl::StrCat(number, "\n", static_cast<int>(key.kind), "\n", key.id, "\n", key.version, "\n", key.file_name);
}

std::optional<std::pair<uint64_t, SymbolFileKey>> ParseOrder(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, '\n');
  uint64_t number = 0;
  int kind = 0;
  SymbolFileKey key;
  if (fields.size() != 5 || !absl::SimpleAtoi(fields[0], &number) || !absl::SimpleAtoi(fields[1], &kind) || kind < 0 ||
      kind > static_cast<int>(SymbolFileKind::kR2rMap) || !IsLowerHex(fields[2]) ||
      !absl::SimpleAtoi(fields[3], &key.version)) {
    return std::nullopt;
  }
  key.kind = static_cast<SymbolFileKind>(kind);
  key.id = std::string(fields[2]);
  key.file_name = std::string(fields[4]);
  return std::make_pair(number, std::move(key));
}

std::string ReplyText(const OrderReply& reply) {
  return absl::StrCat(reply.number, "\n", static_cast<int>(reply.result), "\n", reply.bytes, "\n", reply.rejected, "\n",
                      reply.failures, "\n", Line(reply.detail));
}

std::optional<OrderReply> ParseReply(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, '\n');
  OrderReply reply;
  int result = 0;
  if (fields.size() != 6 || !absl::SimpleAtoi(fields[0], &reply.number) || !absl::SimpleAtoi(fields[1], &result) ||
      result < 0 || result > static_cast<int>(OrderResult::kFailed) || !absl::SimpleAtoi(fields[2], &reply.bytes) ||
      !absl::SimpleAtoi(fields[3], &reply.rejected) || !absl::SimpleAtoi(fields[4], &reply.failures)) {
    return std::nullopt;
  }
  reply.result = static_cast<OrderResult>(result);
  reply.detail = Line(fields[5]);
  return reply;
}

FetchWorker::FetchWorker(std::vector<SymbolServerUrl> servers, std::vector<std::unique_ptr<SymbolFetcher>> fetchers,
                         SymbolCache cache, std::string work_folder)
    : fetchers_(std::move(fetchers)),
      cache_(std::move(cache)),
      work_folder_(std::move(work_folder)),
      servers_number_(SymbolCache::NumberOf(servers)) {
  for (SymbolServerUrl& url : servers) servers_.push_back({std::move(url), 0});
}

OrderReply FetchWorker::Do(uint64_t number, const SymbolFileKey& key) {
  OrderReply reply;
  reply.number = number;
  for (Server& server : servers_) {
    for (const std::unique_ptr<SymbolFetcher>& fetcher : fetchers_) {
      if (Ask(server, *fetcher, key, reply)) return reply;
    }
  }
  reply.result = reply.failures > 0   ? OrderResult::kFailed
                 : reply.rejected > 0 ? OrderResult::kRejected
                                      : OrderResult::kMissing;
  // What a server sends in place of the file it will send tomorrow too.
  if (reply.failures == 0) cache_.NoteMissing(key, servers_number_);
  return reply;
}

bool FetchWorker::Ask(Server& server, SymbolFetcher& fetcher, const SymbolFileKey& key, OrderReply& reply) {
  const std::string path = absl::StrCat(work_folder_, "/received");
  for (size_t place = 0; place < fetcher.Places(server.url, key); ++place) {
    if (server.unreachable >= kMaxUnreachable) {
      ++reply.failures;
      if (reply.detail.empty()) reply.detail = absl::StrCat(server.url.base, ": it gave no answer before");
      return false;
    }
    unlink(path.c_str());
    const FetchOutcome outcome = fetcher.Fetch(server.url, key, place, path);
    server.unreachable = outcome.result == FetchResult::kUnreachable ? server.unreachable + 1 : 0;
    if (outcome.result == FetchResult::kMissing) continue;
    if (outcome.result != FetchResult::kFound) {
      ++reply.failures;
      reply.detail = absl::StrCat(server.url.base, ": ", outcome.detail);
      continue;
    }
    const absl::StatusOr<uint64_t> bytes = CheckFile(key, path);
    if (absl::IsNotFound(bytes.status())) continue;
    if (!bytes.ok()) {
      ++reply.rejected;
      reply.detail = absl::StrCat(server.url.base, ": ", bytes.status().message());
      continue;
    }
    if (const absl::Status stored = cache_.Adopt(path, key); !stored.ok()) {
      ++reply.failures;
      reply.detail = std::string(stored.message());
      continue;
    }
    reply.result = OrderResult::kStored;
    reply.bytes = *bytes;
    unlink(path.c_str());
    return true;
  }
  unlink(path.c_str());
  return false;
}

}  // namespace clrsampler
