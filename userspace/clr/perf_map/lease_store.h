// The directory in which leases lie, and the lock that says whether their owner lives.
//
// A lease file is locked (flock) by the run that wrote it for as long as that run lives; the kernel drops the lock with
// the process, however it ended. So "its owner is dead" needs no pid, and the process that takes the lock over is the
// only one to repair. A file gets its name only when its content is on disk and locked, and never over another lease of
// the same process. The directory must be ours and closed to others: its files say what a process with root's rights
// shall remove.
#ifndef CLRSAMPLER_CLR_PERF_MAP_LEASE_STORE_H_
#define CLRSAMPLER_CLR_PERF_MAP_LEASE_STORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/perf_map/lease_record.h"
#include "os/unique_fd.h"

namespace clrsampler {

inline constexpr char kDefaultLeaseDirectory[] = "/run/clrsampler/leases";

// One lease file, locked by this process. Destruction unlocks it and leaves it there, for the next one to repair.
class Lease {
 public:
  const LeaseRecord& record() const { return record_; }
  absl::Status AddFile(const LeasedFile& file);  // on disk when it returns
  void Remove();                                 // there is nothing left to undo

 private:
  friend class LeaseStore;
  Lease(std::shared_ptr<const UniqueFd> directory, std::string name, UniqueFd fd, LeaseRecord record)
      : directory_(std::move(directory)), name_(std::move(name)), fd_(std::move(fd)), record_(std::move(record)) {}

  std::shared_ptr<const UniqueFd> directory_;
  std::string name_;
  UniqueFd fd_;
  LeaseRecord record_;
};

class LeaseStore {
 public:
  // Makes the directory (mode 0700) where `create` says so. NotFound: there is none. PermissionDenied: it is not ours
  // alone.
  static absl::StatusOr<LeaseStore> Open(const std::string& directory, bool create);

  // On disk, locked and under its name when it returns. AlreadyExists: there is a lease on that process.
  absl::StatusOr<Lease> Create(const LeaseRecord& record);

  // Leases whose owner is dead, now ours. Files that a dead writer did not finish are removed on the way: nothing was
  // sent before they were.
  std::vector<Lease> TakeDead();

  // Whether there is a lease on that process.
  bool Has(uint32_t tgid) const;

  // Leases of a run that lie here, locked or not.
  size_t CountOf(uint32_t agent_pid, uint64_t agent_start_ticks) const;

 private:
  explicit LeaseStore(UniqueFd directory) : directory_(std::make_shared<const UniqueFd>(std::move(directory))) {}
  std::vector<std::string> Names() const;

  std::shared_ptr<const UniqueFd> directory_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_PERF_MAP_LEASE_STORE_H_
