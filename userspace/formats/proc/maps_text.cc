#include "formats/proc/maps_text.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "formats/proc/fields.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kDeleted = " (deleted)";

// "r-xp": anything else in these four places means that the line is something else.
bool TakePermissions(absl::string_view& rest, MapsLine& line) {
  if (rest.size() < 4) return false;
  const auto flag = [](char c, char set) { return c == set || c == '-'; };
  if (!flag(rest[0], 'r') || !flag(rest[1], 'w') || !flag(rest[2], 'x')) return false;
  if (rest[3] != 'p' && rest[3] != 's') return false;
  line.readable = rest[0] == 'r';
  line.writable = rest[1] == 'w';
  line.executable = rest[2] == 'x';
  line.shared = rest[3] == 's';
  rest.remove_prefix(4);
  return true;
}

bool TakeDevice(absl::string_view& rest, MapsLine& line) {
  const std::optional<uint64_t> device_major = TakeHex(rest);
  if (!device_major || !TakeChar(rest, ':')) return false;
  const std::optional<uint64_t> device_minor = TakeHex(rest);
  if (!device_minor || *device_major > UINT32_MAX || *device_minor > UINT32_MAX) return false;
  line.device_major = static_cast<uint32_t>(*device_major);
  line.device_minor = static_cast<uint32_t>(*device_minor);
  return true;
}

}  // namespace

std::optional<MapsLine> ParseMapsLine(absl::string_view rest) {
  MapsLine line;
  const std::optional<uint64_t> start = TakeHex(rest);
  if (!start || !TakeChar(rest, '-')) return std::nullopt;
  const std::optional<uint64_t> end = TakeHex(rest);
  if (!end || *end <= *start || !TakeChar(rest, ' ')) return std::nullopt;
  line.start = *start;
  line.end = *end;
  if (!TakePermissions(rest, line) || !TakeChar(rest, ' ')) return std::nullopt;
  const std::optional<uint64_t> offset = TakeHex(rest);
  if (!offset || !TakeChar(rest, ' ')) return std::nullopt;
  line.file_offset = *offset;
  if (!TakeDevice(rest, line) || !TakeChar(rest, ' ')) return std::nullopt;
  const std::optional<uint64_t> inode = TakeDecimal(rest);
  if (!inode || (!rest.empty() && rest.front() != ' ')) return std::nullopt;
  line.inode = *inode;
  TakeBlanks(rest);  // padding up to column 73; a path begins with '/' or '[' and never with a blank
  line.path = absl::StrReplaceAll(rest, {{"\\012", "\n"}});
  return line;
}

MapsText ParseMaps(absl::string_view text, bool executable_only) {
  MapsText result;
  while (!text.empty()) {
    std::optional<MapsLine> line = ParseMapsLine(TakeLine(text));
    if (!line) {
      ++result.damaged_lines;
    } else if (line->executable || !executable_only) {
      result.lines.push_back(*std::move(line));
    }
  }
  return result;
}

absl::string_view WithoutDeletedMark(absl::string_view path) {
  if (absl::EndsWith(path, kDeleted)) path.remove_suffix(kDeleted.size());
  return path;
}

}  // namespace clrsampler
