// Lines of /proc/PID/maps (fs/proc/task_mmu.c, show_map_vma; proc(5)).
//
// The path is the only part that the target chooses. The kernel escapes a newline in it as "\012" and nothing else, so
// a line can't be forged. A file whose name really holds the four characters "\012" is the one case that can't be told
// apart.
#ifndef CLRSAMPLER_FORMATS_PROC_MAPS_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_MAPS_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

struct MapsLine {
  uint64_t start = 0;
  uint64_t end = 0;  // exclusive, above start
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  uint64_t file_offset = 0;  // bytes
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;  // 0: no file
  std::string path;    // "\012" turned back into a newline, as perf's mmap events carry it; " (deleted)" is kept
};

// One line without its newline; nullopt: not a line of maps.
std::optional<MapsLine> ParseMapsLine(absl::string_view line);

struct MapsText {
  std::vector<MapsLine> lines;
  size_t damaged_lines = 0;
};

// A whole file, or the part of it that was read: a last line without newline is damaged unless it parses.
// `executable_only` drops the other lines before they cost memory.
MapsText ParseMaps(absl::string_view text, bool executable_only = false);

// "/a/b.so (deleted)" -> "/a/b.so".
absl::string_view WithoutDeletedMark(absl::string_view path);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_MAPS_TEXT_H_
