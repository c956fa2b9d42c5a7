#include "pipeline/stop_guard.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/proc/stat_text.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kSaid =
    "error: the loop hangs in the kernel, on a file system that does not answer; it is left\n";

// The signal came in a wait that it does not end. Work, however long, is no reason to throw a recording away.
bool HangsInKernel(pid_t thread) {
  const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat("/proc/self/task/", thread, "/stat"), 4096);
  if (!text.ok()) return false;
  const absl::StatusOr<StatText> stat = ParseStat(*text);
  return stat.ok() && stat->state == 'D';
}

}  // namespace

absl::StatusOr<std::unique_ptr<StopGuard>> StopGuard::Start(int signals) {
  UniqueFd end(eventfd(0, EFD_CLOEXEC));
  if (!end.valid()) return ErrnoError(errno, "eventfd");
  std::unique_ptr<StopGuard> guard(new StopGuard(signals, std::move(end), static_cast<pid_t>(syscall(SYS_gettid))));
  guard->thread_ = std::thread([raw = guard.get()] { raw->Watch(); });
  return guard;
}

StopGuard::~StopGuard() {
  eventfd_write(end_.get(), 1);
  thread_.join();
}

void StopGuard::Watch() const {
  int hangs = 0;
  while (true) {
    // Readable as long as nobody has taken the signal.
    pollfd waits[] = {{end_.get(), POLLIN, 0}, {signals_, POLLIN, 0}};
    if (poll(waits, hangs == 0 ? 2 : 1, hangs == 0 ? -1 : kLookMs) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    if (!HangsInKernel(guarded_)) {
      hangs = 0;
      pollfd end{end_.get(), POLLIN, 0};
      if (poll(&end, 1, kLookMs) != 0) return;
      continue;
    }
    if (++hangs < kLooks) continue;
    (void)!write(STDERR_FILENO, kSaid.data(), kSaid.size());
    _exit(128 + SIGTERM);
  }
}

}  // namespace clrsampler
