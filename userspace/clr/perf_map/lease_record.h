// The content of a lease file: enough to undo, by another process and later, what was switched on in a target.
//
// Lines of text, "KEY VALUE...", the first one naming the format. Files are added as lines behind it once they are
// known, so that no byte that was synced is ever written again. A last line without its end is one whose writer was
// killed. It is left out.
#ifndef CLRSAMPLER_CLR_PERF_MAP_LEASE_RECORD_H_
#define CLRSAMPLER_CLR_PERF_MAP_LEASE_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/diagnostics_client.h"

namespace clrsampler {

struct LeasedFile {
  std::string name;  // "perf-42.map", in the record's directory
  uint64_t device = 0;
  uint64_t inode = 0;

  friend bool operator==(const LeasedFile&, const LeasedFile&) = default;
};

struct LeaseRecord {
  // The owner. The lock on the file, which dies with the owner, shows that the owner is dead. These are for the guard
  // and for people.
  uint32_t agent_pid = 0;
  uint64_t agent_start_ticks = 0;
  // In what the numbers below are to be understood.
  std::string boot_id;
  uint64_t agent_pid_namespace = 0;  // inode of /proc/self/ns/pid

  TargetIdentity target;
  uint64_t pid_namespace = 0;    // of the target
  uint64_t mount_namespace = 0;  // of the target
  uint64_t root_device = 0;      // of the target's root directory
  uint64_t root_inode = 0;
  uint32_t owner_uid = 0;            // of the target, and so of its files
  uint64_t created_realtime_ns = 0;  // of the lease; what we caused is not older
  std::string directory;             // absolute, without control characters
  std::vector<LeasedFile> files;
};

std::string EncodeLeaseRecord(const LeaseRecord& record);
std::string EncodeLeasedFile(const LeasedFile& file);

// An error when a line is missing or not understood: such a record was never finished, and nothing was switched on.
absl::StatusOr<LeaseRecord> ParseLeaseRecord(absl::string_view text);

// The names that an IPC-enabled perf map may take in the target's directory: the map, and perfinfo-PID.map of .NET 8.
std::vector<std::string> PerfMapFileNames(uint32_t namespace_pid);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_PERF_MAP_LEASE_RECORD_H_
