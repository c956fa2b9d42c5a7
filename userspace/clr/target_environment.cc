#include "clr/target_environment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "os/file_io.h"

namespace clrsampler {

std::optional<std::string> ReadEnvironment(absl::string_view proc_root, uint32_t tgid) {
  absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat(proc_root, "/", tgid, "/environ"), 1 << 20);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

}  // namespace clrsampler
