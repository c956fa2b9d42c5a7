#include "pipeline/dotnet_hint.h"

#include <dirent.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "process/maps_mapping.h"
#include "process/target_files.h"

namespace clrsampler {

std::vector<uint32_t> ProcessesLikeDotNet(const std::string& proc_root, FileBroker* broker) {
  std::vector<uint32_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(proc_root.c_str()), closedir);
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory.get())) {
    uint32_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    const absl::StatusOr<std::string> maps =
        TargetFiles(proc_root, pid, nullptr, broker).ReadProc("maps", kMaxMapsBytes);
    if (!maps.ok()) continue;
    // The runtime's double-mapped heaps, and its library where those are off. A single-file program with them off has
    // neither.
    if (absl::StrContains(*maps, ":doublemapper") || absl::StrContains(*maps, "/libcoreclr.so")) found.push_back(pid);
  }
  return found;
}

}  // namespace clrsampler
