#include "clr/diagnostics_client.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/proc/environ_text.h"
#include "formats/proc/stat_text.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxProcFileBytes = 4096;

// The distance that the process's time namespace adds to CLOCK_BOOTTIME, the clock of start times.
int64_t BoottimeOffsetNs(absl::string_view proc_root, absl::string_view process) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(absl::StrCat(proc_root, "/", process, "/timens_offsets"), kMaxProcFileBytes);
  if (!text.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    if (fields.size() == 3 && fields[0] == "boottime" && absl::SimpleAtoi(fields[1], &seconds) &&
        absl::SimpleAtoi(fields[2], &nanoseconds) && std::abs(seconds) < (int64_t{1} << 32)) {
      return seconds * static_cast<int64_t>(kSecondNs) + nanoseconds;
    }
  }
  return 0;
}

// A process that gave up root after its start has a socket that belongs to root.
absl::Status CheckOwner(const OpenedFile& located, const TargetFiles& files, absl::string_view path) {
  const uid_t owner = located.status.st_uid;
  if (owner == 0 || files.owner() == owner) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, " belongs to user ", owner));
}

}  // namespace

std::optional<uint64_t> StartTicksOfLiving(absl::string_view proc_root, uint32_t tgid) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(absl::StrCat(proc_root, "/", tgid, "/stat"), kMaxProcFileBytes);
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<StatText> stat = ParseStat(*text);
  if (!stat.ok() || stat->state == 'Z' || stat->state == 'X') return std::nullopt;
  return stat->start_ticks;
}

std::vector<std::string> DiagnosticsSocketPaths(absl::string_view proc_root, const TargetIdentity& target,
                                                const TargetFiles& files) {
  std::vector<std::string> directories;
  const std::string environment = files.ReadProc("environ", kMaxEnvironmentBytes).value_or(std::string());
  std::string temporary(EnvironmentValue(environment, "TMPDIR").value_or("/tmp"));
  while (temporary.size() > 1 && temporary.back() == '/') temporary.pop_back();
  if (!temporary.empty() && temporary[0] == '/') directories.push_back(std::move(temporary));
  if (directories.empty() || directories[0] != "/tmp") directories.push_back("/tmp");

  const int64_t offset_ns =
      BoottimeOffsetNs(proc_root, absl::StrCat(target.tgid)) - BoottimeOffsetNs(proc_root, "self");
  const int64_t hertz = std::max<int64_t>(sysconf(_SC_CLK_TCK), 1);
  const int64_t tick_ns = static_cast<int64_t>(kSecondNs) / hertz;
  std::vector<uint64_t> keys{target.start_ticks + static_cast<uint64_t>(offset_ns / tick_ns)};
  // An offset that is no whole number of ticks may carry the part of a tick that we can't see over to the next one.
  if (offset_ns % tick_ns > 0) keys.push_back(keys[0] + 1);
  if (offset_ns % tick_ns < 0) keys.push_back(keys[0] - 1);

  std::vector<std::string> paths;
  for (const std::string& directory : directories) {
    for (const uint64_t key : keys) {
      paths.push_back(absl::StrCat(directory == "/" ? "" : directory, "/dotnet-diagnostic-", target.namespace_pid, "-",
                                   key, "-socket"));
    }
  }
  return paths;
}

bool HasDiagnosticsSocket(absl::string_view proc_root, const TargetIdentity& target, const TargetFiles& files) {
  const std::vector<std::string> paths = DiagnosticsSocketPaths(proc_root, target, files);
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    const absl::Status located = files.LocateSocket(path).status();
    return located.ok() || absl::IsFailedPrecondition(located);  // ConnectToRuntime says what it is about it
  });
}

absl::StatusOr<UniqueFd> ConnectToRuntime(absl::string_view proc_root, const TargetIdentity& target,
                                          const TargetFiles& files) {
  absl::Status reason = absl::NotFoundError(absl::StrCat("process ", target.tgid, " has no diagnostics socket"));
  for (const std::string& path : DiagnosticsSocketPaths(proc_root, target, files)) {
    absl::StatusOr<OpenedFile> located = files.LocateSocket(path);
    if (located.ok()) {
      if (absl::Status owned = CheckOwner(*located, files, path); !owned.ok()) located = std::move(owned);
    }
    if (!located.ok()) {
      if (!absl::IsNotFound(located.status()) && absl::IsNotFound(reason)) reason = located.status();
      continue;
    }
    UniqueFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!connection.valid()) return ErrnoError(errno, "socket");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string by_descriptor = absl::StrCat("/proc/self/fd/", located->fd.get());
    std::memcpy(address.sun_path, by_descriptor.c_str(), by_descriptor.size() + 1);
    if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      // The process that bound it has gone. This is as good as no socket.
      if (errno == ECONNREFUSED) continue;
      reason =
          errno == EAGAIN ? absl::UnavailableError(absl::StrCat(path, ": its queue is full")) : ErrnoError(errno, path);
      continue;
    }
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return ErrnoError(errno, path);
    if (peer.pid <= 0 || static_cast<uint32_t>(peer.pid) != target.tgid) {
      reason = absl::PermissionDeniedError(
          absl::StrCat(path, " is served by process ", peer.pid, ", not by process ", target.tgid));
      continue;
    }
    return connection;
  }
  return reason;
}

DiagnosticsExchange::DiagnosticsExchange(UniqueFd connected, std::string request, MonotonicTime deadline,
                                         AfterReply after)
    : connection_(std::move(connected)), after_(after), request_(std::move(request)), deadline_(deadline) {}

std::span<const std::byte> DiagnosticsExchange::payload() const {
  return std::span(received_).subspan(std::min(received_.size(), kDiagnosticsHeaderBytes), payload_bytes_);
}

std::span<const std::byte> DiagnosticsExchange::surplus() const {
  return std::span(received_).subspan(std::min(received_.size(), kDiagnosticsHeaderBytes + payload_bytes_));
}

bool DiagnosticsExchange::End(absl::Status status) {
  over_ = true;
  status_ = std::move(status);
  connection_.reset();
  return true;
}

bool DiagnosticsExchange::Step(MonotonicTime now) {
  if (over_) return true;
  while (sending()) {
    const ssize_t sent =
        send(connection_.get(), request_.data() + sent_, request_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) return End(absl::UnavailableError(absl::StrCat("send: ", std::strerror(errno))));
    sent_ += static_cast<size_t>(sent);
  }
  while (!sending()) {
    std::array<std::byte, 4096> chunk;
    const ssize_t got = recv(connection_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got < 0) return End(absl::UnavailableError(absl::StrCat("recv: ", std::strerror(errno))));
    if (got == 0) return End(absl::UnavailableError("the runtime closed the connection without a reply"));
    received_.insert(received_.end(), chunk.begin(), chunk.begin() + got);
    const absl::StatusOr<std::optional<DiagnosticsReply>> reply = ParseDiagnosticsReply(received_);
    if (!reply.ok()) return End(reply.status());
    if (!reply->has_value()) continue;  // at most kMaxDiagnosticsMessageBytes: the parser has judged the size
    error_ = (*reply)->error;
    payload_bytes_ = (*reply)->payload.size();
    if (after_ == AfterReply::kStream && !error_.has_value()) stream_ = std::move(connection_);
    return End(absl::OkStatus());
  }
  if (now >= deadline_) return End(absl::DeadlineExceededError("the runtime did not answer in time"));
  return false;
}

}  // namespace clrsampler
