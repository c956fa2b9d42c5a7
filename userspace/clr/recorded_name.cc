#include "clr/recorded_name.h"

#include <algorithm>
#include <span>

#include "absl/status/statusor.h"

namespace clrsampler {

std::optional<std::string> ReadRecordedName(TailedFile& file, MethodNameRef name, size_t most_bytes,
                                            CutRecordedName cut) {
  std::string text;
  // Most names are shorter than the first read.
  for (size_t bytes = 512;; bytes = std::min(bytes * 4, most_bytes)) {
    text.resize(bytes);
    const absl::StatusOr<size_t> got = file.Read(name.offset, std::as_writable_bytes(std::span(text)));
    if (!got.ok()) return std::nullopt;
    bool ended = false;
    const absl::string_view found = cut(absl::string_view(text.data(), *got), ended);
    if (!ended && *got == bytes && bytes < most_bytes) continue;
    // A name that ends with the file was taken like that, or its hash is another one.
    if (MethodNameHash(found) != name.hash) return std::nullopt;
    return std::string(found);
  }
}

}  // namespace clrsampler
