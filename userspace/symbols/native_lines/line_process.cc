#include "symbols/native_lines/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "os/file_io.h"
#include "os/heap.h"
#include "sandbox/helper_process.h"
#include "sandbox/sandbox.h"
#include "status/status.h"
#include "symbols/native_lines/line_reader.h"
#include "symbols/native_lines/line_wire.h"

namespace clrsampler {
namespace {

// The work that a reader is at, in memory that its keeper sees. A reader that was taken over writes there as it likes.
// The keeper then leaves out one file, any one.
struct AtWork {
  uint64_t question = 0;  // 0: none
  uint64_t file = 0;
};

void Say(int socket, absl::string_view bytes) {
  (void)!send(socket, bytes.data(), std::min(bytes.size(), HelperProcess::kMaxDatagramBytes), MSG_NOSIGNAL);
}

// Private memory that can be written, libraries included. RLIMIT_DATA counts this.
uint64_t DataBytes() {
  constexpr size_t kField = 5;  // proc(5), statm
  const absl::StatusOr<std::string> text = ReadWholeFile("/proc/self/statm", 256);
  if (!text.ok()) return 0;
  const std::vector<absl::string_view> fields = absl::StrSplit(*text, ' ');
  uint64_t pages = 0;
  if (fields.size() <= kField || !absl::SimpleAtoi(fields[kField], &pages)) return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// In the new process, while it may still open files.
void LimitMemory(uint64_t bytes) {
  const rlim_t limit = DataBytes() + bytes;
  const rlimit data{limit, limit};
  setrlimit(RLIMIT_DATA, &data);
  // libdw reports lack of memory on standard error, and that is for our own messages.
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDERR_FILENO);
}

[[noreturn]] void RunReader(pid_t keeper, int socket, const OpenLineTable& open, const LineProcessLimits& limits,
                            const std::vector<uint64_t>& left_out, AtWork& at_work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(0);
  syscall(SYS_close_range, socket + 1, ~0u, 0);  // Linux 5.9
  if (!EnterSandbox(ReaderProfile()).ok()) _exit(1);
  LineReader reader(open);
  while (std::optional<HelperProcess::Message> message = HelperProcess::Wait(socket)) {
    const std::optional<LineQuestion> question = ParseLineQuestion(message->text);
    if (!question || !message->file.valid()) _exit(1);
    LineAnswer answer{question->number, "", {}};
    if (std::find(left_out.begin(), left_out.end(), question->file) != left_out.end()) {
      answer.failure = "it is not read again";
    } else {
      at_work = {question->number, question->file};
      alarm(limits.question_seconds);
      answer = reader.Answer(*question, std::move(message->file));
      alarm(0);
      at_work = {};
    }
    Say(socket, LineAnswerBytes(answer));
    // libdw keeps what it has decoded until a file is closed.
    if (HeapBytesInUse() > limits.data_bytes / 4) reader.Close();
  }
  _exit(0);
}

void KeepReaders(int socket, const absl::StatusOr<OpenLineTable>& open, const LineProcessLimits& limits) {
  if (!open.ok()) return Say(socket, NoAnswersBytes({std::string(open.status().message()), HintOf(open.status())}));
  void* const shared = mmap(nullptr, sizeof(AtWork), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return;
  auto* const at_work = new (shared) AtWork;
  const pid_t self = getpid();
  std::vector<uint64_t> left_out;
  for (int i = 0; i < limits.readers; ++i) {
    const pid_t reader = fork();
    if (reader < 0) return;
    if (reader == 0) RunReader(self, socket, *open, limits, left_out, *at_work);
    int status = 0;
    while (waitpid(reader, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;  // the agent is gone
    const AtWork lost = std::exchange(*at_work, {});
    if (lost.question != 0) left_out.push_back(lost.file);
    Say(socket, ReaderLostBytes(lost.question));
  }
}

class LineProcess : public LineHelper {
 public:
  explicit LineProcess(HelperProcess process) : process_(std::move(process)) {}

  bool Send(absl::string_view question, int file) override { return process_.Send(question, file); }
  std::optional<std::string> Receive() override { return process_.Receive(); }
  void WaitMs(int milliseconds) override {
    pollfd readable{process_.socket(), POLLIN, 0};
    poll(&readable, 1, milliseconds);
  }
  bool ended() const override { return process_.ended() || ended_; }
  void End() override {
    ended_ = true;
    process_.End();
  }

 private:
  HelperProcess process_;
  bool ended_ = false;
};

// Reports why there is none.
class NoLineProcess : public LineHelper {
 public:
  explicit NoLineProcess(const absl::Status& why)
      : why_(NoAnswersBytes({std::string(why.message()), "start this program again"})) {}

  bool Send(absl::string_view, int) override { return false; }
  std::optional<std::string> Receive() override { return why_; }
  void WaitMs(int) override {}
  bool ended() const override { return true; }
  void End() override {}

 private:
  const std::string why_;
};

}  // namespace

std::unique_ptr<LineHelper> StartLineHelper(const LineProcessLimits& limits,
                                            std::function<absl::StatusOr<OpenLineTable>()> load) {
  absl::StatusOr<OpenLineTable> open = absl::UnavailableError("");
  HelperOptions options{.name = "clrsampler-line", .profile = ReaderKeeperProfile()};
  options.prepare = [&] {
    open = load();
    LimitMemory(limits.data_bytes);
  };
  absl::StatusOr<HelperProcess> process =
      HelperProcess::Start(options, [&](int socket) { KeepReaders(socket, open, limits); });
  if (!process.ok()) return std::make_unique<NoLineProcess>(process.status());
  return std::make_unique<LineProcess>(*std::move(process));
}

}  // namespace clrsampler
