// The files that the lines of frames are in: where their text can be had, and the text itself if it is wanted.
#ifndef CLRSAMPLER_SYMBOLS_SOURCE_FILES_H_
#define CLRSAMPLER_SYMBOLS_SOURCE_FILES_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct SourceFile {
  std::string url;   // http or https, by the word of the PDB; empty: not known
  std::string text;  // empty: not wanted, not there, or not the text that was compiled
};

// Main loop only.
class SourceFiles {
 public:
  static constexpr size_t kMaxFiles = 16 * 1024;
  static constexpr size_t kMaxNameBytes = 8 << 20;   // of all names and URLs
  static constexpr size_t kMaxTextBytes = 64 << 20;  // of all

  explicit SourceFiles(bool wants_text = false) : wants_text_(wants_text) {}

  bool wants_text() const { return wants_text_; }
  bool contains(absl::string_view name) const { return files_.contains(name); }
  // `name` as SourcePlace::file has it. The file that was given first stays; those beyond the bounds are left out.
  void Add(absl::string_view name, SourceFile file) {
    main_loop_.Check();
    const size_t name_bytes = name.size() + file.url.size();
    if (files_.size() >= kMaxFiles || name_bytes > kMaxNameBytes - name_bytes_) return;
    if (text_bytes_ + file.text.size() > kMaxTextBytes) file.text.clear();
    const size_t bytes = file.text.size();
    if (!files_.try_emplace(std::string(name), std::move(file)).second) return;
    name_bytes_ += name_bytes;
    text_bytes_ += bytes;
  }
  const std::map<std::string, SourceFile, std::less<>>& all() const { return files_; }

 private:
  const bool wants_text_;
  std::map<std::string, SourceFile, std::less<>> files_;
  size_t name_bytes_ = 0;
  size_t text_bytes_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_SOURCE_FILES_H_
