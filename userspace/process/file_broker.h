// Asks file systems that targets see, in a process that can be given up.
//
// A thread that waits for a FUSE file system which has taken the request can't be killed, and neither can its process.
// So every call that may wait is made by a worker process. One that does not answer in time is left to itself, and
// another one takes its place. Workers come from a nursery, a process that was forked before there was much memory to
// keep: what hangs for ever holds little.
#ifndef CLRSAMPLER_PROCESS_FILE_BROKER_H_
#define CLRSAMPLER_PROCESS_FILE_BROKER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/clock.h"
#include "os/mapped_file.h"
#include "os/unique_fd.h"
#include "process/file_question.h"
#include "process/file_worker.h"
#include "process/hung_places.h"
#include "status/notices.h"
#include "status/thread_checker.h"

namespace clrsampler {

// How long is waited for a process of ours. Tests that mean something else than time have more of it.
struct FilePatience {
  // An answer takes some 0.03 ms; a copy what the file system needs for its bytes.
  uint64_t answer_ns = 250'000'000;
  uint64_t copy_ns = 1'000'000'000;
  // A worker that waits for a CPU and not for a file system gets so much time, within HungPlaces::TakeCpuWait.
  uint64_t most_ns = 1'500'000'000;
  uint64_t nursery_ns = 1'000'000'000;  // it only forks
};

struct FileBrokerCounters {
  uint64_t asked = 0;
  uint64_t hung = 0;     // no answer in time
  uint64_t refused = 0;  // not asked, because the place hung before
  uint64_t copied_files = 0;
  uint64_t copied_bytes = 0;
};

// Main loop only. Ends its processes with it, but for those that can't end.
class FileBroker {
 public:
  // `enter_sandbox` is called in the process that makes the workers.
  static absl::StatusOr<std::unique_ptr<FileBroker>> Start(EnterWorkerSandbox enter_sandbox,
                                                           const FilePatience& patience = FilePatience());
  // nullptr: to nobody. The notices that are given outlive it, or are taken back before.
  void ReportTo(Notices* notices) { notices_ = notices; }
  ~FileBroker();

  // The answer, or Unavailable: there was none in time, or `place` hung a short time ago. `fd` is lent.
  FileAnswer Ask(const FileQuestion& question, int fd, absl::string_view place);

  // Whether reading the memory of a process may wait, since it has files mapped that may. Asked anew every
  // kMappedFilesNs: the process may map one in between.
  bool MemoryMayWait(absl::string_view proc_root, uint32_t pid);
  // Reads the memory of a process that it may read. `memory` is its /proc/PID/mem. False: not all of it could be
  // read in time.
  bool ReadMemory(uint32_t pid, int memory, uint64_t address, std::span<std::byte> into);

  // A view of the content of a file whose reading may wait, as it is now. `fd` only locates it. `pid` is the process
  // that it is for. ResourceExhausted: the file is larger than any that is copied. Unavailable: there is no room for it
  // as long as others have theirs, or the file system does not answer.
  absl::StatusOr<MappedFile> MapCopy(uint32_t pid, int fd, const struct stat& status, uint64_t max_bytes);

  const FileBrokerCounters& counters() const { return counters_; }
  pid_t nursery_pid() const { return nursery_; }

  // Copies are memory of the agent.
  static constexpr uint64_t kMaxCopyBytes = 64 << 20;
  static constexpr uint64_t kMaxCopiedBytes = 192 << 20;
  static constexpr uint64_t kMaxCopiedBytesOfProcess = 96 << 20;
  static constexpr uint64_t kMappedFilesNs = 5'000'000'000;
  // Those that hang for ever. Beyond, files are not asked about until one of them ends.
  static constexpr size_t kMaxStuck = 32;

 private:
  struct Worker {
    uint64_t number = 0;
    pid_t pid = -1;
    UniqueFd process;  // pidfd
    UniqueFd socket;
    UniqueFd life;  // closed, it ends the worker
  };
  FileBroker(pid_t nursery, UniqueFd socket, const FilePatience& patience)
      : patience_(patience), nursery_(nursery), nursery_socket_(std::move(socket)) {}

  absl::Status StartWorker();
  absl::StatusOr<pid_t> PidOfWorker(uint64_t number);
  absl::StatusOr<FileAnswer> Exchange(const FileQuestion& question, int fd, uint64_t patience_ns);
  void GiveUp();
  void Report(absl::string_view kind, absl::string_view subject, absl::string_view message,
              absl::string_view hint = "");
  bool IsStuck(uint64_t worker) const;
  size_t CountStuck();

  Notices* notices_ = nullptr;
  const SystemClock clock_;
  const FilePatience patience_;
  const pid_t nursery_;
  UniqueFd nursery_socket_;
  Worker worker_;
  uint64_t workers_ = 0;
  std::vector<Worker> given_up_;
  HungPlaces hung_;
  FileBrokerCounters counters_;
  struct MappedFiles {
    MonotonicTime looked;
    bool may_wait = false;
  };
  absl::flat_hash_map<uint32_t, MappedFiles> mapped_files_;  // by process
  // In views that are still there.
  struct Copied {
    uint64_t bytes = 0;
    absl::flat_hash_map<uint32_t, uint64_t> by_process;
  };
  std::shared_ptr<Copied> copied_ = std::make_shared<Copied>();
  [[no_unique_address]] ThreadChecker main_loop_;
};

// Has notices told to somebody who does not outlive the broker.
class FileBrokerReports {
 public:
  // nullptr: there is no broker.
  FileBrokerReports(FileBroker* broker, Notices& notices) : broker_(broker) {
    if (broker_ != nullptr) broker_->ReportTo(&notices);
  }
  ~FileBrokerReports() {
    if (broker_ != nullptr) broker_->ReportTo(nullptr);
  }
  FileBrokerReports(const FileBrokerReports&) = delete;
  FileBrokerReports& operator=(const FileBrokerReports&) = delete;

 private:
  FileBroker* const broker_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_FILE_BROKER_H_
