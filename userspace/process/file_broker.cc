#include "process/file_broker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/proc/stat_text.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxTextBytes = 64 << 20;
constexpr size_t kMaxProcesses = 65'536;

enum class Waited { kReadable, kTimedOut };

// Ready means also that the other side is gone.
Waited WaitReadable(int fd, uint64_t timeout_ns, const Clock& clock) {
  const uint64_t end_ns = clock.Now().ns + timeout_ns;
  while (true) {
    const uint64_t now_ns = clock.Now().ns;
    const uint64_t left_ms = now_ns >= end_ns ? 0 : (end_ns - now_ns) / kMillisecondNs + 1;
    pollfd wait{fd, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(left_ms));
    if (ready > 0) return Waited::kReadable;
    if (ready == 0 || now_ns >= end_ns) return Waited::kTimedOut;
  }
}

// It waits for nothing but a CPU. A busy machine is no file system that hangs.
bool WantsCpu(pid_t pid) {
  const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat("/proc/", pid, "/stat"), 4096);
  if (!text.ok()) return false;
  const absl::StatusOr<StatText> stat = ParseStat(*text);
  return stat.ok() && stat->state == 'R';
}

bool HasEnded(const UniqueFd& process) {
  pollfd wait{process.get(), POLLIN, 0};
  return poll(&wait, 1, 0) > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileBroker>> FileBroker::Start(EnterWorkerSandbox enter_sandbox,
                                                              const FilePatience& patience) {
  absl::StatusOr<std::pair<pid_t, UniqueFd>> nursery = StartFileNursery(enter_sandbox);
  if (!nursery.ok()) return Annotate(nursery.status(), "the process that opens files of targets");
  std::unique_ptr<FileBroker> broker(new FileBroker(nursery->first, std::move(nursery->second), patience));
  RETURN_IF_ERROR(broker->StartWorker());
  return broker;
}

FileBroker::~FileBroker() {
  worker_.life.reset();
  nursery_socket_.reset();
  while (waitpid(nursery_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool FileBroker::IsStuck(uint64_t worker) const {
  return std::any_of(given_up_.begin(), given_up_.end(),
                     [&](const Worker& one) { return one.number == worker && !HasEnded(one.process); });
}

size_t FileBroker::CountStuck() {
  std::erase_if(given_up_, [](const Worker& one) { return HasEnded(one.process); });
  return given_up_.size();
}

absl::Status FileBroker::StartWorker() {
  if (CountStuck() >= kMaxStuck) {
    return absl::UnavailableError(absl::StrCat(kMaxStuck, " processes wait for file systems that do not answer"));
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoError(errno, "socketpair");
  Worker worker{.number = ++workers_, .socket = UniqueFd(ends[0])};
  {
    const UniqueFd theirs(ends[1]);
    // A datagram holds all bytes that are read at once.
    const int bytes = static_cast<int>(kMaxFileMessageBytes) * 2;
    for (const int end : ends) setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    const absl::string_view wish(reinterpret_cast<const char*>(&worker.number), sizeof worker.number);
    if (!SendFileMessage(nursery_socket_.get(), wish, theirs.get())) {
      return absl::UnavailableError("the process that makes workers has ended");
    }
  }
  ASSIGN_OR_RETURN(worker.pid, PidOfWorker(worker.number));
  worker.process = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, worker.pid, 0)));
  if (!worker.process.valid()) return ErrnoError(errno, "pidfd_open");
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  const UniqueFd life_read(ends[0]);
  worker.life = UniqueFd(ends[1]);
  if (!SendFileMessage(worker.socket.get(), "life", life_read.get())) {
    return absl::UnavailableError("no worker could be made");
  }
  worker_ = std::move(worker);
  return absl::OkStatus();
}

// The nursery's message about that worker. Messages about earlier workers may come first: nobody waited until it had
// answered.
absl::StatusOr<pid_t> FileBroker::PidOfWorker(uint64_t number) {
  const uint64_t begin_ns = clock_.Now().ns;
  while (true) {
    const uint64_t waited_ns = clock_.Now().ns - begin_ns;
    const uint64_t left_ns = patience_.nursery_ns - std::min(patience_.nursery_ns, waited_ns);
    if (WaitReadable(nursery_socket_.get(), left_ns, clock_) == Waited::kTimedOut) {
      return absl::UnavailableError("the process that makes workers does not answer");
    }
    const std::optional<FileMessage> message = ReceiveFileMessage(nursery_socket_.get());
    NurseryReply reply;
    if (!message || message->bytes.size() != sizeof reply) return absl::UnavailableError("no worker could be made");
    std::memcpy(&reply, message->bytes.data(), sizeof reply);
    if (reply.number != number) continue;
    if (reply.pid <= 0) return absl::UnavailableError("no worker could be made");
    return static_cast<pid_t>(reply.pid);
  }
}

void FileBroker::GiveUp() {
  if (!worker_.process.valid()) return;
  worker_.life.reset();
  worker_.socket.reset();
  given_up_.push_back(std::move(worker_));
  worker_ = Worker();
}

absl::StatusOr<FileAnswer> FileBroker::Exchange(const FileQuestion& question, int fd, uint64_t patience_ns) {
  if (!worker_.socket.valid()) RETURN_IF_ERROR(StartWorker());
  if (!SendFileMessage(worker_.socket.get(), FileQuestionBytes(question), fd)) {
    GiveUp();
    RETURN_IF_ERROR(StartWorker());
    if (!SendFileMessage(worker_.socket.get(), FileQuestionBytes(question), fd)) {
      return absl::UnavailableError("the process that opens files has ended");
    }
  }
  const uint64_t begin_ns = clock_.Now().ns;
  while (WaitReadable(worker_.socket.get(), patience_ns, clock_) == Waited::kTimedOut) {
    constexpr uint64_t kCpuWaitNs = 20 * kMillisecondNs;
    const MonotonicTime now = clock_.Now();
    if (now.ns - begin_ns < patience_.most_ns && WantsCpu(worker_.pid) && hung_.TakeCpuWait(kCpuWaitNs, now)) {
      patience_ns = kCpuWaitNs;
      continue;
    }
    // It may have answered between the end of the wait and the look at it, and wait for the next question since.
    if (WaitReadable(worker_.socket.get(), 0, clock_) == Waited::kReadable) break;
    return absl::DeadlineExceededError("it does not answer");
  }
  std::optional<FileMessage> message = ReceiveFileMessage(worker_.socket.get());
  if (!message) {
    GiveUp();
    return absl::UnavailableError("the process that opens files has ended");
  }
  std::optional<FileAnswer> answer = ParseFileAnswer(message->bytes);
  if (!answer) return absl::InternalError("the process that opens files answers nonsense");
  if (question.kind == FileQuestionKind::kProcText && message->fd.valid()) {
    lseek(message->fd.get(), 0, SEEK_SET);
    ASSIGN_OR_RETURN(answer->text, ReadWholeFile(message->fd.get(), kMaxTextBytes));
  } else {
    answer->fd = std::move(message->fd);
  }
  return *std::move(answer);
}

void FileBroker::Report(absl::string_view kind, absl::string_view subject, absl::string_view message,
                        absl::string_view hint) {
  if (notices_ != nullptr) notices_->Add(kind, subject, message, hint);
}

FileAnswer FileBroker::Ask(const FileQuestion& question, int fd, absl::string_view place) {
  main_loop_.Check();
  FileAnswer none;
  const MonotonicTime now = clock_.Now();
  if (!hung_.MayAsk(place, now, [this](uint64_t worker) { return IsStuck(worker); })) {
    ++counters_.refused;
    none.status = absl::UnavailableError(
        absl::StrCat(question.path.empty() ? place : question.path, ": its file system does not answer"));
    return none;
  }
  ++counters_.asked;
  const bool copies = question.kind == FileQuestionKind::kCopy;
  absl::StatusOr<FileAnswer> answer =
      Exchange(question, fd, hung_.PatienceNs(copies ? patience_.copy_ns : patience_.answer_ns, now));
  if (answer.ok()) {
    hung_.NoteAnswer(place);
    return *std::move(answer);
  }
  none.status = absl::UnavailableError(absl::StrCat(
      question.path.empty() ? place : question.path, ": ",
      absl::IsDeadlineExceeded(answer.status()) ? "its file system does not answer" : answer.status().message()));
  if (!absl::IsDeadlineExceeded(answer.status())) {
    ++counters_.refused;
    Report("files_not_asked", "", absl::StrCat("a file of a process was not opened: ", answer.status().message()));
    return none;
  }
  ++counters_.hung;
  hung_.NoteHang(place, worker_.number, clock_.Now());
  GiveUp();
  Report("files_hung", place,
         absl::StrCat(question.path.empty() ? "a file" : question.path,
                      question.pid != 0 ? absl::StrCat(" of process ", question.pid) : "",
                      " lies on a file system that does not answer; code in files there keeps the names that "
                      "are known"),
         "is the server of that mount (FUSE, NFS) alive? It is asked again when it answers");
  return none;
}

bool FileBroker::MemoryMayWait(absl::string_view proc_root, uint32_t pid) {
  main_loop_.Check();
  const MonotonicTime now = clock_.Now();
  const auto found = mapped_files_.find(pid);
  if (found != mapped_files_.end() && now.ns - found->second.looked.ns < kMappedFilesNs) return found->second.may_wait;
  if (mapped_files_.size() >= kMaxProcesses) mapped_files_.clear();
  FileQuestion question{.kind = FileQuestionKind::kMappedFiles, .proc_root = std::string(proc_root), .pid = pid};
  question.bytes = kMaxTextBytes;
  const FileAnswer answer = Ask(question, -1, absl::StrCat("mappings of ", pid));
  // In doubt it may. A process that is gone has no memory.
  const bool may_wait = answer.may_wait || absl::IsUnavailable(answer.status);
  mapped_files_[pid] = {now, may_wait};
  return may_wait;
}

bool FileBroker::ReadMemory(uint32_t pid, int memory, uint64_t address, std::span<std::byte> into) {
  main_loop_.Check();
  constexpr size_t kAtOnce = 64 * 1024;
  for (size_t done = 0; done < into.size();) {
    const size_t bytes = std::min(kAtOnce, into.size() - done);
    FileQuestion question{.kind = FileQuestionKind::kMemory, .pid = pid, .start = address + done};
    question.bytes = bytes;
    const FileAnswer answer = Ask(question, memory, absl::StrCat("memory of ", pid));
    if (!answer.status.ok() || answer.text.size() != bytes) return false;
    std::memcpy(into.data() + done, answer.text.data(), bytes);
    done += bytes;
  }
  return true;
}

absl::StatusOr<MappedFile> FileBroker::MapCopy(uint32_t pid, int fd, const struct stat& status, uint64_t max_bytes) {
  main_loop_.Check();
  const auto bytes = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  if (bytes > std::min(max_bytes, kMaxCopyBytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes on a network or user-space file system, more than is copied"));
  }
  const auto of_process = copied_->by_process.find(pid);
  const bool its_share_is_used =
      of_process != copied_->by_process.end() && of_process->second + bytes > kMaxCopiedBytesOfProcess;
  if (its_share_is_used || copied_->bytes + bytes > kMaxCopiedBytes) {
    return absl::UnavailableError(absl::StrCat("no room at the moment to copy its ", bytes,
                                               " bytes from a network or user-space file system: other files of ",
                                               its_share_is_used ? "the process" : "processes", " take it"));
  }
  FileQuestion question;
  question.kind = FileQuestionKind::kCopy;
  question.bytes = bytes;
  FileAnswer answer = Ask(question, fd, absl::StrCat("device ", major(status.st_dev), ":", minor(status.st_dev)));
  RETURN_IF_ERROR(answer.status);
  ++counters_.copied_files;
  counters_.copied_bytes += bytes;
  copied_->bytes += bytes;
  copied_->by_process[pid] += bytes;
  std::shared_ptr<void> held(nullptr, [copied = copied_, pid, bytes](void*) {
    copied->bytes -= bytes;
    if ((copied->by_process[pid] -= bytes) == 0) copied->by_process.erase(pid);
  });
  absl::StatusOr<MappedFile> file = MappedFile::Map(answer.fd.get(), 0, 0, bytes);
  if (file.ok()) file->Keep(std::move(held));
  return file;
}

}  // namespace clrsampler
