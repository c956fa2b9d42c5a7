#include "symbol_server/symbol_server.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "os/mapped_file.h"
#include "process/image_files.h"
#include "sandbox/sandbox.h"
#include "status/status.h"
#include "symbol_server/symbol_check.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kCannot = "cannot ";

// In the fetching process: orders in, replies out, until the other end is gone.
void ServeOrders(int socket, const SymbolServerOptions& options) {
  const auto say = [socket](absl::string_view text) {
    (void)!send(socket, text.data(), std::min(text.size(), HelperProcess::kMaxDatagramBytes), MSG_NOSIGNAL);
  };
  absl::StatusOr<std::unique_ptr<SymbolFetcher>> fetcher = MakeCurlFetcher(options.limits);
  if (!fetcher.ok()) {
    return say(absl::StrCat(kCannot, fetcher.status().message(), "\n", HintOf(fetcher.status())));
  }
  FetchWorker worker(options.servers, *std::move(fetcher));
  while (std::optional<HelperProcess::Message> message = HelperProcess::Wait(socket)) {
    const auto order = ParseOrder(message->text);
    if (!order || !message->file.valid()) continue;
    const OrderReply reply = worker.Do(order->first, order->second, message->file.get());
    message->file.reset();  // the agent takes no file that somebody may still write to
    say(ReplyText(reply));
  }
}

}  // namespace

std::map<std::string, uint64_t> SymbolServerCounters::ByName() const {
  return {{"wanted", wanted},         {"from_cache", from_cache}, {"fetched", fetched},
          {"missing", missing},       {"rejected", rejected},     {"failed", failed},
          {"unfinished", unfinished}, {"not_asked", not_asked},   {"fetched_bytes", fetched_bytes}};
}

absl::StatusOr<std::unique_ptr<SymbolServer>> SymbolServer::Start(SymbolServerOptions options) {
  options.limits.file_bytes = std::min(options.limits.file_bytes, options.cache.max_bytes);
  const std::string folder = options.cache_folder.empty() ? SymbolCache::DefaultFolder() : options.cache_folder;
  absl::StatusOr<SymbolCache> cache = SymbolCache::Open(folder, options.cache);
  if (!cache.ok()) {
    return WithHint(Annotate(cache.status(), "no cache for symbol files"),
                    "--symbol-cache DIR chooses a folder; without --symbol-server none is needed");
  }
  absl::StatusOr<HelperProcess> process = HelperProcess::Start(
      {.name = "clrsampler-get", .max_file_bytes = options.limits.file_bytes, .profile = FetcherProfile()},
      [&](int socket) { ServeOrders(socket, options); });
  if (!process.ok()) return process.status();
  return std::unique_ptr<SymbolServer>(new SymbolServer(std::move(options), *std::move(cache), *std::move(process)));
}

SymbolServer::SymbolServer(SymbolServerOptions options, SymbolCache cache, HelperProcess process)
    : options_(std::move(options)),
      cache_(std::move(cache)),
      process_(std::move(process)),
      process_pid_(process_.pid()),
      servers_number_(SymbolCache::NumberOf(options_.servers)) {}

SymbolServer::~SymbolServer() {
  process_.End();
  cache_.DropFile(process_pid_);
}

std::shared_ptr<const ImageFile> SymbolServer::OpenCached(const SymbolFileKey& key) {
  const std::optional<UniqueFd> fd = cache_.Find(key);
  if (!fd) return nullptr;
  struct stat status {};
  if (fstat(fd->get(), &status) != 0) return nullptr;
  absl::StatusOr<MappedFile> content = MappedFile::Map(fd->get(), 0, 0, ImageFiles::kMaxImageBytes);
  if (!content.ok()) return nullptr;
  auto file = std::make_shared<ImageFile>();
  file->path = absl::StrCat(cache_.folder(), "/", CacheFileName(key));
  file->device = status.st_dev;
  file->inode = status.st_ino;
  file->size = static_cast<uint64_t>(status.st_size);
  file->content = *std::move(content);
  // The fetching process has looked into it before. But a disk can fail, and a process can be overtaken.
  if (!CheckSymbolFile(key, file->bytes()).ok() || file->content.damaged()) {
    cache_.Discard(key);
    return nullptr;
  }
  return file;
}

SymbolFiles::Answer SymbolServer::Get(const SymbolFileKey& key) {
  main_loop_.Check();
  const std::string request = RequestText(key);
  if (const auto found = by_request_.find(request); found != by_request_.end()) {
    Wanted& wanted = *wanted_[found->second];
    if (wanted.state != State::kHere) return {wanted.state, nullptr};
    std::shared_ptr<const ImageFile> file = wanted.file.lock();
    if (file == nullptr) file = OpenCached(key);
    if (file == nullptr) {  // another run has evicted it, or the disk has failed
      ++counters_.failed;
      wanted.state = State::kNone;
      return {State::kNone, nullptr};
    }
    wanted.file = file;
    return {State::kHere, std::move(file)};
  }
  if (wanted_.size() >= kMaxWanted) {
    ++counters_.not_asked;
    return {State::kNone, nullptr};
  }
  const size_t number = wanted_.size();
  by_request_.emplace(request, number);
  wanted_.push_back(std::make_unique<Wanted>(Wanted{key, State::kWaiting, {}}));
  Wanted& wanted = *wanted_.back();
  ++counters_.wanted;
  if (std::shared_ptr<const ImageFile> file = OpenCached(key)) {
    ++counters_.from_cache;
    wanted.state = State::kHere;
    wanted.file = file;
    return {State::kHere, std::move(file)};
  }
  if (cache_.IsMissing(key, servers_number_)) {
    ++counters_.missing;
    wanted.state = State::kNone;
    return {State::kNone, nullptr};
  }
  if (finished_) {  // nobody is there to fetch it
    ++counters_.failed;
    wanted.state = State::kNone;
    return {State::kNone, nullptr};
  }
  queue_.push_back(number);
  return {State::kWaiting, nullptr};
}

void SymbolServer::Poll(Notices& notices) {
  main_loop_.Check();
  if (finished_) return;
  while (std::optional<std::string> datagram = process_.Receive()) {
    if (const std::optional<OrderReply> reply = ParseReply(*datagram)) {
      Take(*reply, notices);
      continue;
    }
    const std::vector<std::string> lines = absl::StrSplit(*datagram, '\n');
    if (absl::StartsWith(lines[0], kCannot)) {
      notices.Add("symbol_server_off", "",
                  absl::StrCat("symbol servers are not used: ", absl::StripPrefix(lines[0], kCannot)),
                  lines.size() > 1 ? lines[1] : "");
      return GiveUp();
    }
  }
  if (process_.ended()) {
    notices.Add("symbol_server_ended", "", "the process that fetches symbol files has ended; no more files will come");
    return GiveUp();
  }
  SendOrder(notices);
}

void SymbolServer::GiveUp() {
  counters_.failed += OpenOrders();
  for (const std::unique_ptr<Wanted>& wanted : wanted_) {
    if (wanted->state == State::kWaiting) wanted->state = State::kNone;
  }
  queue_.clear();
  at_work_.reset();
  finished_ = true;
}

size_t SymbolServer::OpenOrders() const { return queue_.size() + (at_work_ ? 1 : 0); }

void SymbolServer::SendOrder(Notices& notices) {
  if (at_work_) return;
  // It may have come under another name.
  for (; !queue_.empty(); queue_.pop_front()) {
    Wanted& wanted = *wanted_[queue_.front()];
    const std::shared_ptr<const ImageFile> file = OpenCached(wanted.key);
    if (file == nullptr) break;
    ++counters_.from_cache;
    wanted.state = State::kHere;
    ++generation_;
  }
  if (queue_.empty()) return;
  const size_t number = queue_.front();
  const absl::StatusOr<UniqueFd> file = cache_.BeginFile(process_pid_);
  if (!file.ok()) {
    notices.Add("symbol_server_off", "",
                absl::StrCat("symbol servers are not used: no file can be made: ", file.status().message()));
    return GiveUp();
  }
  if (!process_.Send(OrderText(number, wanted_[number]->key), file->get())) return;
  queue_.pop_front();
  at_work_ = number;
}

// The process that received it is not believed. It may still hold the file, and the content may be anything.
absl::Status SymbolServer::Adopt(const SymbolFileKey& key) {
  ASSIGN_OR_RETURN(const UniqueFd received, cache_.OpenReceived(process_pid_));
  ASSIGN_OR_RETURN(const MappedFile content, MappedFile::Map(received.get(), 0, 0, ImageFiles::kMaxImageBytes));
  RETURN_IF_ERROR(CheckSymbolFile(key, content.bytes()));
  return cache_.Adopt(process_pid_, key);
}

void SymbolServer::Take(const OrderReply& reply, Notices& notices) {
  if (!at_work_ || reply.number != *at_work_) return;
  at_work_.reset();
  Wanted& wanted = *wanted_[reply.number];
  const std::string what = wanted.key.file_name.empty() ? wanted.key.id : wanted.key.file_name;
  counters_.rejected += reply.rejected;
  if (reply.rejected > 0) {
    notices.Add("symbol_file_rejected", wanted.key.id,
                absl::StrCat("a symbol server sent a wrong file for ", what, ": ", reply.detail),
                "its files are mixed up; nothing was named from it");
  }
  wanted.state = State::kNone;
  switch (reply.result) {
    case OrderResult::kReceived:
      if (const absl::Status adopted = Adopt(wanted.key); !adopted.ok()) {
        ++counters_.failed;
        notices.Add("symbol_server_failed", "", absl::StrCat("no symbols for ", what, ": ", adopted.message()));
        break;
      }
      ++counters_.fetched;
      counters_.fetched_bytes += reply.bytes;
      wanted.state = State::kHere;
      ++generation_;
      break;
    case OrderResult::kFailed:
      ++counters_.failed;
      notices.Add("symbol_server_failed", "", absl::StrCat("no symbols for ", what, ": ", reply.detail),
                  "--stats counts such files; those that come next time are kept in the cache");
      break;
    case OrderResult::kMissing:
    case OrderResult::kRejected:
      ++counters_.missing;
      // A server that sends something else in place of the file will send it tomorrow, too.
      cache_.NoteMissing(wanted.key, servers_number_);
      break;
  }
  cache_.DropFile(process_pid_);
}

void SymbolServer::Finish(Notices& notices) {
  main_loop_.Check();
  Poll(notices);
  if (finished_) return;
  finished_ = true;
  counters_.unfinished = OpenOrders();
  if (counters_.unfinished > 0) {
    notices.Add("symbol_files_unfinished", "",
                absl::StrCat(counters_.unfinished, " symbol files had not come when the run ended"),
                "sample for longer, or again: what came is in the cache");
  }
  process_.End();
  cache_.DropFile(process_pid_);
}

}  // namespace clrsampler
