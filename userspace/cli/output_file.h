// Where results go: a file that is checked before any work is done, or standard output.
#ifndef CLRSAMPLER_CLI_OUTPUT_FILE_H_
#define CLRSAMPLER_CLI_OUTPUT_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/created_file.h"
#include "os/unique_fd.h"

namespace clrsampler {

// Nothing of an existing file is touched before the first Write, so a failed run keeps the last good result. A new file
// is gone again if nothing was written. Once the agent has given up its rights (agent_sandbox.h) it stays, empty, where
// the folder belongs to another user. Move-only.
class OutputFile {
 public:
  // "" and "-" mean standard output, which must be open. Opens (and creates) the file, so an unwritable place is an
  // error now, not after the run.
  static absl::StatusOr<OutputFile> Open(const std::string& path);

  OutputFile(OutputFile&&) = default;
  OutputFile& operator=(OutputFile&&) = default;

  bool is_standard_output() const { return path_.empty(); }
  std::string name() const { return path_.empty() ? "standard output" : path_; }
  int descriptor() const;  // borrowed

  absl::Status Write(absl::string_view text);
  // Reports what a full disk swallowed, or that the reader of a pipe left before the end.
  absl::Status Finish();

 private:
  OutputFile() = default;
  std::string path_;  // empty: standard output
  UniqueFd fd_;
  std::unique_ptr<NewFile> made_;  // until something is written; nullptr: the file was there before
  bool began_ = false;
  bool reader_left_ = false;
};

// Whether results of both descriptors would be in one another: both are standard output, or one regular file.
bool IsOneResult(int a, int b);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_OUTPUT_FILE_H_
