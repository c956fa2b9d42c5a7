#include "formats/proc/mountinfo_text.h"

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "formats/proc/fields.h"

namespace clrsampler {

std::optional<absl::string_view> FileSystemOptionsOf(absl::string_view mountinfo, uint64_t mount_id) {
  while (!mountinfo.empty()) {
    absl::string_view line = TakeLine(mountinfo);
    if (TakeDecimal(line) != mount_id) continue;
    // Blanks in paths and options are written as \040. So the first " - " ends the optional fields.
    const size_t separator = line.find(" - ");
    if (separator == absl::string_view::npos) return std::nullopt;
    return line.substr(line.rfind(' ') + 1);
  }
  return std::nullopt;
}

std::optional<uint64_t> MountIdOfDescriptor(absl::string_view fdinfo) {
  while (!fdinfo.empty()) {
    absl::string_view line = TakeLine(fdinfo);
    if (!absl::ConsumePrefix(&line, "mnt_id:")) continue;
    TakeBlanks(line);
    return TakeDecimal(line);
  }
  return std::nullopt;
}

std::optional<absl::string_view> OptionValue(absl::string_view options, absl::string_view name) {
  for (absl::string_view option : absl::StrSplit(options, ',')) {
    if (absl::ConsumePrefix(&option, name) && absl::ConsumePrefix(&option, "=")) return option;
  }
  return std::nullopt;
}

}  // namespace clrsampler
