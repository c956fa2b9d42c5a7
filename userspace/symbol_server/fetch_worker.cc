#include "symbol_server/fetch_worker.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "os/mapped_file.h"
#include "process/image_files.h"
#include "status/status.h"
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

absl::StatusOr<uint64_t> CheckFile(const SymbolFileKey& key, int fd) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Map(fd, 0, 0, ImageFiles::kMaxImageBytes));
  if (const absl::Status checked = CheckSymbolFile(key, file.bytes()); !checked.ok()) return checked;
  return file.bytes().size();
}

std::vector<std::string> Paths(const SymbolServerUrl& server, const SymbolFileKey& key) {
  std::vector<std::string> paths;
  if (server.debuginfod) paths = DebuginfodPaths(key);
  if (server.ssqp) {
    for (std::string& path : SsqpPaths(key)) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace

std::string OrderText(uint64_t number, const SymbolFileKey& key) {
  return absl::StrCat(number, "\n", static_cast<int>(key.kind), "\n", key.id, "\n", key.version, "\n", key.checksum,
                      "\n", key.file_name);
}

std::optional<std::pair<uint64_t, SymbolFileKey>> ParseOrder(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, '\n');
  uint64_t number = 0;
  int kind = 0;
  SymbolFileKey key;
  if (fields.size() != 6 || !absl::SimpleAtoi(fields[0], &number) || !absl::SimpleAtoi(fields[1], &kind) || kind < 0 ||
      kind > static_cast<int>(SymbolFileKind::kPortablePdb) || !IsLowerHex(fields[2]) ||
      !absl::SimpleAtoi(fields[3], &key.version)) {
    return std::nullopt;
  }
  key.kind = static_cast<SymbolFileKind>(kind);
  key.id = std::string(fields[2]);
  key.checksum = std::string(fields[4]);
  key.file_name = std::string(fields[5]);
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

FetchWorker::FetchWorker(std::vector<SymbolServerUrl> servers, std::unique_ptr<SymbolFetcher> fetcher)
    : fetcher_(std::move(fetcher)) {
  for (SymbolServerUrl& url : servers) servers_.push_back({std::move(url), 0});
}

OrderReply FetchWorker::Do(uint64_t number, const SymbolFileKey& key, int file) {
  OrderReply reply;
  reply.number = number;
  for (Server& server : servers_) {
    for (const std::string& path : Paths(server.url, key)) {
      if (Ask(server, path, key, file, reply)) return reply;
    }
  }
  reply.result = reply.failures > 0   ? OrderResult::kFailed
                 : reply.rejected > 0 ? OrderResult::kRejected
                                      : OrderResult::kMissing;
  return reply;
}

bool FetchWorker::Ask(Server& server, const std::string& path, const SymbolFileKey& key, int file, OrderReply& reply) {
  if (server.unreachable >= kMaxUnreachable) {
    ++reply.failures;
    if (reply.detail.empty()) reply.detail = absl::StrCat(server.url.base, ": it gave no answer before");
    return false;
  }
  const auto failed = [&](uint64_t& count, absl::string_view why) {
    ++count;
    reply.detail = absl::StrCat(server.url.base, ": ", why);
    return false;
  };
  if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) {
    return failed(reply.failures, ErrnoError(errno, "the file to write into").message());
  }
  const FetchOutcome outcome = fetcher_->Fetch(absl::StrCat(server.url.base, "/", path), SsqpHeader(key), file);
  server.unreachable = outcome.result == FetchResult::kUnreachable ? server.unreachable + 1 : 0;
  if (outcome.result == FetchResult::kMissing) return false;
  if (outcome.result != FetchResult::kFound) return failed(reply.failures, outcome.detail);
  const absl::StatusOr<uint64_t> bytes = CheckFile(key, file);
  if (absl::IsNotFound(bytes.status())) return false;
  if (!bytes.ok()) return failed(reply.rejected, bytes.status().message());
  reply.result = OrderResult::kReceived;
  reply.bytes = *bytes;
  return true;
}

}  // namespace clrsampler
