// Tells which processes a continuous run keeps. Pure.
#ifndef CLRSAMPLER_SERVE_PROCESS_SELECTION_H_
#define CLRSAMPLER_SERVE_PROCESS_SELECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "process/process.h"

namespace clrsampler {

// One of each kind that is given must fit; all empty: every process.
struct ProcessSelection {
  std::vector<std::string>
      cgroups;  // paths as /proc/PID/cgroup has them, with what lies below: "/system.slice/shop.service"
  std::vector<std::string> containers;  // names, or ids of which 12 digits or more are given
  std::vector<std::string> comms;       // names of processes; of the first 15 bytes, which is what the kernel keeps
  std::vector<uint32_t> uids;           // real

  bool empty() const { return cgroups.empty() && containers.empty() && comms.empty() && uids.empty(); }
};

bool Selects(const ProcessSelection& selection, const Process& process);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SERVE_PROCESS_SELECTION_H_
