// /proc/PID/cgroup (cgroups(7)): "HIERARCHY:CONTROLLERS:PATH" lines.
#ifndef CLRSAMPLER_FORMATS_PROC_CGROUP_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_CGROUP_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

struct CgroupLine {
  uint32_t hierarchy = 0;   // 0: version 2
  std::string controllers;  // "cpu,cpuacct", "name=systemd"; empty for version 2
  std::string path;  // from the reader's cgroup namespace root; newline as "\012" and backslash as "\134" are undone
};

// Lines that are no cgroup lines are left out.
std::vector<CgroupLine> ParseCgroup(absl::string_view text);

// The path that tells a container or service: that of version 2 unless it is the root and a version 1 hierarchy (first
// name=systemd, then cpu, then any) knows better. Empty: none.
std::string CgroupPath(const std::vector<CgroupLine>& lines);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_CGROUP_TEXT_H_
