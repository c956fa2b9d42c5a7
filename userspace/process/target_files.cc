#include "process/target_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "os/tape_answer.h"
#include "process/file_broker.h"
#include "process/hung_places.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Texts for which the kernel takes the lock of the process's address space, or reads that space. The process can delay
// this.
bool NeedsMemoryOf(absl::string_view name) { return name == "maps" || name == "environ"; }

uint64_t ModifiedNs(const struct stat& status) {
  return static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

// A datagram from the broker holds so much.
constexpr size_t kReadBytes = 64 * 1024;

}  // namespace

FileAnswer OpenedFile::Ask(const FileQuestion& question) const {
  if (broker == nullptr || !may_wait) return AnswerFileQuestion(question, fd.get());
  return broker->Ask(question, fd.get(), absl::StrCat("device ", major(status.st_dev), ":", minor(status.st_dev)));
}

absl::StatusOr<struct stat> OpenedFile::StatusNow() const {
  return Taped(
      tape,
      [this]() -> absl::StatusOr<struct stat> {
        const FileAnswer answer = Ask({.kind = FileQuestionKind::kStatus});
        RETURN_IF_ERROR(answer.status);
        return answer.file;
      },
      "status of ", status.st_dev, " ", status.st_ino);
}

absl::Status OpenedFile::Refresh() {
  ASSIGN_OR_RETURN(status, StatusNow());
  return absl::OkStatus();
}

absl::StatusOr<size_t> OpenedFile::ReadAt(uint64_t offset, std::span<std::byte> buffer) const {
  const auto read = [&](std::span<std::byte> into) -> absl::StatusOr<size_t> {
    if (!may_wait) return clrsampler::ReadAt(fd.get(), offset, into);
    size_t done = 0;
    while (done < into.size()) {
      const size_t bytes = std::min(kReadBytes, into.size() - done);
      const FileAnswer answer = Ask({.kind = FileQuestionKind::kRead, .offset = offset + done, .bytes = bytes});
      RETURN_IF_ERROR(answer.status);
      if (answer.text.empty()) break;
      std::memcpy(into.data() + done, answer.text.data(), std::min(answer.text.size(), bytes));
      done += std::min(answer.text.size(), bytes);
    }
    return done;
  };
  if (tape == nullptr) return read(buffer);
  const absl::StatusOr<std::string> bytes = Taped(
      tape,
      [&]() -> absl::StatusOr<std::string> {
        std::string text(buffer.size(), '\0');
        ASSIGN_OR_RETURN(const size_t size, read(std::as_writable_bytes(std::span(text))));
        text.resize(size);
        return text;
      },
      "read ", status.st_dev, " ", status.st_ino, " ", offset, " ", buffer.size());
  RETURN_IF_ERROR(bytes.status());
  if (bytes->size() > buffer.size()) return absl::DataLossError("more than was asked for");
  std::memcpy(buffer.data(), bytes->data(), bytes->size());
  return bytes->size();
}

absl::StatusOr<MappedFile> OpenedFile::Map(uint64_t max_bytes) const {
  if (may_wait && broker != nullptr) {
    if (tape == nullptr) return broker->MapCopy(pid, fd.get(), status, max_bytes);
    return absl::UnavailableError("a file on a network or user-space file system is not saved in a stream");
  }
  if (tape == nullptr) return MappedFile::Map(fd.get(), 0, 0, max_bytes);
  return tape->Map({status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), ModifiedNs(status)}, fd.get(),
                   max_bytes);
}

bool OpenedFile::on_overlay() const {
  return Taped(
      tape, [this] { return overlay; }, "overlay ", status.st_dev, " ", status.st_ino);
}

TargetFiles::TargetFiles(absl::string_view proc_root, uint32_t pid, Tape* tape, FileBroker* broker)
    : proc_root_(proc_root), pid_(pid), tape_(tape), broker_(broker) {
  Reopen();
}

TargetFiles::TargetFiles(const TargetFiles& parent, uint32_t child_pid)
    : proc_root_(parent.proc_root_),
      pid_(child_pid),
      tape_(parent.tape_),
      broker_(parent.broker_),
      mount_namespace_(parent.mount_namespace_),
      root_identity_(parent.root_identity_),
      reachable_(parent.reachable_),
      root_(parent.root_),
      owner_(parent.owner_) {}

void TargetFiles::Reopen() {
  const auto answer = Taped(
      tape_,
      [this]() -> std::optional<std::vector<uint32_t>> {
        ReopenNow();
        if (root_ == nullptr) return std::nullopt;
        return RootAnswer();
      },
      "root of ", pid_);
  if (!answer) return;
  reachable_ = true;
  TakeRootAnswer(*answer);
}

// The owner, and then the place: numbers of 64 bits, the upper half first. A stream may have neither, or the owner
// only.
std::vector<uint32_t> TargetFiles::RootAnswer() const {
  std::vector<uint32_t> answer;
  if (!owner_) return answer;
  answer.push_back(*owner_);
  if (!root_identity_) return answer;
  for (const uint64_t number : {mount_namespace_, root_identity_->first, root_identity_->second}) {
    answer.push_back(static_cast<uint32_t>(number >> 32));
    answer.push_back(static_cast<uint32_t>(number));
  }
  return answer;
}

void TargetFiles::TakeRootAnswer(const std::vector<uint32_t>& answer) {
  if (answer.empty()) return;
  owner_ = answer.front();
  if (answer.size() != 7) return;
  const auto number = [&](size_t at) { return uint64_t{answer[at]} << 32 | answer[at + 1]; };
  mount_namespace_ = number(1);
  root_identity_ = std::make_pair(number(3), number(5));
}

template <typename Open>
absl::StatusOr<OpenedFile> TargetFiles::ThroughTape(Open&& open, absl::string_view question) const {
  if (tape_ == nullptr) return open();
  absl::StatusOr<OpenedFile> file;
  const absl::StatusOr<struct stat> status = Taped(
      tape_,
      [&]() -> absl::StatusOr<struct stat> {
        file = open();
        if (!file.ok()) return file.status();
        return file->status;
      },
      "open ", pid_, " ", question);
  RETURN_IF_ERROR(status.status());
  if (tape_->plays()) file = OpenedFile{.fd = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))};
  const timespec changed = file->status.st_ctim;
  file->status = *status;
  file->status.st_ctim = changed;
  file->tape = tape_;
  return file;
}

absl::StatusOr<std::string> TargetFiles::ReadProc(absl::string_view name, size_t max_bytes) const {
  return Taped(
      tape_,
      [&]() -> absl::StatusOr<std::string> {
        if (!NeedsMemoryOf(name)) return ReadWholeFile(absl::StrCat(proc_root_, "/", pid_, "/", name), max_bytes);
        FileQuestion question = Question(FileQuestionKind::kProcText, name);
        question.bytes = max_bytes;
        FileAnswer answer = Ask(question, absl::StrCat("process ", pid_));
        RETURN_IF_ERROR(answer.status);
        return std::move(answer.text);
      },
      "proc ", pid_, " ", name);
}

absl::StatusOr<std::string> TargetFiles::ReadProcLink(absl::string_view name) const {
  return Taped(
      tape_,
      [&]() -> absl::StatusOr<std::string> {
        char path[PATH_MAX];
        const std::string link = absl::StrCat(proc_root_, "/", pid_, "/", name);
        const ssize_t length = readlink(link.c_str(), path, sizeof path);
        if (length < 0) return ErrnoError(errno, link);
        return std::string(path, static_cast<size_t>(length));
      },
      "link ", pid_, " ", name);
}

OpenFileState TargetFiles::StateOfFile(uint64_t device, uint64_t inode, int& descriptor) const {
  const auto answer = Taped(
      tape_,
      [&] {
        FileQuestion question = Question(FileQuestionKind::kHolds, "");
        question.device = device;
        question.inode = inode;
        question.descriptor = descriptor;
        const FileAnswer now = Ask(question, absl::StrCat("descriptors of ", pid_));
        if (now.status.ok()) return std::vector<int32_t>{now.state, now.descriptor};
        return std::vector<int32_t>{static_cast<int32_t>(OpenFileState::kUnknown), -1};
      },
      "holds ", pid_, " ", device, " ", inode);
  if (answer.size() != 2 || answer[0] < 0 || answer[0] > static_cast<int32_t>(OpenFileState::kUnknown)) {
    return OpenFileState::kUnknown;
  }
  descriptor = answer[1];
  return static_cast<OpenFileState>(answer[0]);
}

FileQuestion TargetFiles::Question(FileQuestionKind kind, absl::string_view path) const {
  return {.kind = kind, .proc_root = proc_root_, .pid = pid_, .owner = owner_, .path = std::string(path)};
}

FileAnswer TargetFiles::Ask(const FileQuestion& question, absl::string_view place) const {
  const int root = root_ == nullptr ? -1 : root_->get();
  return broker_ == nullptr ? AnswerFileQuestion(question, root) : broker_->Ask(question, root, place);
}

FileAnswer TargetFiles::Ask(FileQuestionKind kind, absl::string_view path) const {
  return Ask(Question(kind, path), PlaceOf(owner_, mount_namespace_, path));
}

absl::StatusOr<OpenedFile> TargetFiles::Opened(FileAnswer answer) const {
  RETURN_IF_ERROR(answer.status);
  return OpenedFile{.fd = std::move(answer.fd),
                    .status = answer.file,
                    .broker = broker_,
                    .may_wait = answer.may_wait && broker_ != nullptr,
                    .fuse = answer.on_fuse,
                    .overlay = answer.on_overlay,
                    .metacopy = answer.metacopy,
                    .pid = pid_};
}

void TargetFiles::ReopenNow() {
  FileAnswer answer = Ask(Question(FileQuestionKind::kRoot, ""), absl::StrCat("root of ", pid_));
  if (!answer.status.ok()) return;  // what was open before is still the best there is
  root_ = std::make_shared<const UniqueFd>(std::move(answer.fd));
  root_identity_ = std::make_pair(uint64_t{answer.file.st_dev}, uint64_t{answer.file.st_ino});
  mount_namespace_ = answer.mount_namespace;
  if (answer.owner) owner_ = *answer.owner;
}

absl::StatusOr<OpenedFile> TargetFiles::OpenOnHost(const std::string& path) const {
  return ThroughTape([&] { return Opened(Ask(Question(FileQuestionKind::kHost, path), absl::StrCat("host:", path))); },
                     absl::StrCat("host ", path));
}

absl::StatusOr<OpenedFile> TargetFiles::OpenDirectory(absl::string_view path) const {
  return Opened(Ask(FileQuestionKind::kDirectory, path));
}

absl::StatusOr<OpenedFile> TargetFiles::OpenUnlinkedDirectory(absl::string_view path) const {
  return Opened(Ask(FileQuestionKind::kUnlinkedDirectory, path));
}

absl::StatusOr<OpenedFile> TargetFiles::OpenImage(absl::string_view path) const {
  return ThroughTape([&] { return Opened(Ask(FileQuestionKind::kImage, path)); }, absl::StrCat("image ", path));
}

absl::StatusOr<OpenedFile> TargetFiles::OpenMapping(const Mapping& mapping) const {
  return ThroughTape(
      [&] {
        FileQuestion question = Question(FileQuestionKind::kMapping, mapping.path);
        question.start = mapping.start;
        question.end = mapping.end;
        question.inode = mapping.inode;
        question.device = makedev(mapping.device_major, mapping.device_minor);
        return Opened(Ask(question, PlaceOf(owner_, mount_namespace_, mapping.path)));
      },
      absl::StrCat("mapping ", mapping.path, " ", mapping.inode, " ", mapping.start));
}

absl::StatusOr<OpenedFile> TargetFiles::OpenRuntimeFile(absl::string_view path) const {
  return ThroughTape([&] { return Opened(Ask(FileQuestionKind::kRuntimeFile, path)); }, absl::StrCat("runtime ", path));
}

absl::StatusOr<OpenedFile> TargetFiles::LocateSocket(absl::string_view path) const {
  ASSIGN_OR_RETURN(OpenedFile socket, Opened(Ask(FileQuestionKind::kSocket, path)));
  // To connect is to ask the file system for the right to.
  if (socket.may_wait) {
    // Probes are no way round: a runtime in the same image can't be hooked either.
    return WithHint(absl::FailedPreconditionError(absl::StrCat(path, " lies on a file system that may not answer")),
                    "put the folder of the socket on a volume or a tmpfs, for a container by --tmpfs /tmp");
  }
  return socket;
}

absl::Status TargetFiles::RemoveRuntimeFile(absl::string_view directory, absl::string_view name,
                                            absl::FunctionRef<bool(const struct stat&)> is_it) const {
  ASSIGN_OR_RETURN(const OpenedFile opened, OpenDirectory(directory));
  if (opened.may_wait) return absl::UnavailableError(absl::StrCat(directory, " may not answer"));
  const std::string file(name);
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV;  // a file system that a user mounted there is not asked
  const UniqueFd found(static_cast<int>(syscall(SYS_openat2, opened.fd.get(), file.c_str(), &how, sizeof how)));
  const bool is_mount = !found.valid() && errno == EXDEV;
  struct stat status {};
  if (!is_mount && (!found.valid() || fstat(found.get(), &status) != 0)) {
    return ErrnoError(errno, absl::StrCat(directory, "/", name));
  }
  if (is_mount || !S_ISREG(status.st_mode) || !is_it(status)) {
    return absl::FailedPreconditionError(absl::StrCat(directory, "/", name, " is another file by now"));
  }
  if (unlinkat(opened.fd.get(), file.c_str(), 0) != 0) return ErrnoError(errno, absl::StrCat(directory, "/", name));
  return absl::OkStatus();
}

}  // namespace clrsampler
