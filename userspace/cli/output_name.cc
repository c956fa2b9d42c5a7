#include "cli/output_name.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "status/status.h"

namespace clrsampler {
namespace {

std::string FileNamePart(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '/' || static_cast<unsigned char>(c) <= ' ' || c == 0x7f; },
      '_');
  return text;
}

}  // namespace

absl::StatusOr<std::string> ExpandOutputName(absl::string_view pattern, const RecordingSubject& subject) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      name += pattern[i];
      continue;
    }
    const char letter = ++i < pattern.size() ? pattern[i] : '\0';
    if (letter == '%') {
      name += '%';
    } else if (letter == 'c') {
      name += FileNamePart(subject.comm);
    } else if (letter == 'm') {
      name += "%m";
    } else if (letter == 't') {
      name += absl::FormatTime("%Y%m%d-%H%M%S", subject.start, absl::UTCTimeZone());
    } else if (letter == 'p' && !subject.pids.empty()) {
      name += absl::StrJoin(subject.pids, "-");
    } else {
      return WithHint(
          absl::InvalidArgumentError(absl::StrCat("--output ", pattern, ": nothing is known for ",
                                                  letter == '\0' ? "the % at its end" : pattern.substr(i - 1, 2))),
          "%p is the id of the process that --pid names, %c its name, %t the time, %m a module, %% a percent sign");
    }
  }
  return name;
}

std::string NameOfModule(absl::string_view pattern, absl::string_view module) {
  const std::string name = absl::StrReplaceAll(FileNamePart(std::string(module)), {{"[", ""}, {"]", ""}});
  return absl::StrReplaceAll(pattern, {{kModuleInName, name}});
}

}  // namespace clrsampler
