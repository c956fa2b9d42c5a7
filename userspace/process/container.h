// The container, pod or service that a process belongs to: its control group, and a name where one is at hand.
#ifndef CLRSAMPLER_PROCESS_CONTAINER_H_
#define CLRSAMPLER_PROCESS_CONTAINER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "formats/proc/cgroup_identity.h"
#include "process/target_files.h"

namespace clrsampler {

struct Container {
  CgroupIdentity cgroup;
  std::string path;  // of its control group, as /proc/PID/cgroup has it
  // The name of the pod or container, from the environment that the process was started with: the daemon that knows for
  // sure is not asked. The process can write what it likes there, so it is a label, by which people may choose what
  // they see, and nothing else. Letters, digits and "._-" only; empty: none.
  std::string name;

  // One word for tables and labels: the name, else "docker:0123456789ab", else the service; empty: none of these.
  std::string Label() const;
};

// `environment` is the content of /proc/PID/environ, empty where it can't be read. Pure.
Container ContainerOf(absl::string_view cgroup_text, absl::string_view environment);

// Reads /proc/PID/cgroup, and /proc/PID/environ of a process in a container. A process that is gone, or may not be
// read, gives what is left.
Container ReadContainer(const TargetFiles& files);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_CONTAINER_H_
