#include "process/own_vdso.h"

#include <sys/auxv.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "formats/proc/maps_text.h"
#include "os/file_io.h"
#include "process/maps_mapping.h"

namespace clrsampler {

std::vector<std::byte> OwnVdso() {
  const uint64_t start = getauxval(AT_SYSINFO_EHDR);
  const absl::StatusOr<std::string> text = ReadWholeFile("/proc/self/maps", kMaxMapsBytes);
  if (start == 0 || !text.ok()) return {};
  for (const MapsLine& line : ParseMaps(*text, /*executable_only=*/true).lines) {
    if (line.start != start || line.path != "[vdso]") continue;
    std::vector<std::byte> bytes(line.end - line.start);
    std::memcpy(bytes.data(), reinterpret_cast<const void*>(start), bytes.size());  // NOLINT: the kernel says where
    return bytes;
  }
  return {};
}

}  // namespace clrsampler
