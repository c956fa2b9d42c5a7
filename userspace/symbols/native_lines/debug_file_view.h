// A file with debug information as libdw is to see it: without sections that are not asked for.
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_DEBUG_FILE_VIEW_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_DEBUG_FILE_VIEW_H_

#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "symbols/native_lines/debug_sections.h"

namespace clrsampler {

// Owns a private mapping of the whole file. Reading behind the end of a file that was truncated meanwhile kills the
// process (SIGBUS). Move-only; one thread.
class DebugFileView {
 public:
  // `fd` is only borrowed. Errors: it can't be mapped, or its headers tell of no debug section.
  static absl::StatusOr<DebugFileView> Map(int fd);

  DebugFileView(DebugFileView&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), sections_(std::move(other.sections_)) {}
  DebugFileView& operator=(DebugFileView&&) = delete;
  ~DebugFileView();

  // nullptr: there is none.
  const DebugSection* Find(absl::string_view name) const;
  // Says of all other debug sections that they have no bytes.
  void ShowOnly(std::span<const absl::string_view> names);

  // The table of section headers may be written to, as libelf does. Nothing of it reaches the file.
  std::span<char> bytes() const { return bytes_; }

 private:
  explicit DebugFileView(std::span<char> bytes) : bytes_(bytes) {}

  std::span<char> bytes_;
  std::vector<DebugSection> sections_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_DEBUG_FILE_VIEW_H_
