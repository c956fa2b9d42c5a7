// Output formats. A writer turns a finished profile into text or bytes; it knows no files and no options but its own.
#ifndef CLRSAMPLER_OUTPUT_PROFILE_WRITER_H_
#define CLRSAMPLER_OUTPUT_PROFILE_WRITER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "profile/account.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"

namespace clrsampler {

// What a run measured. A view: the tables belong to the recorder and must not change while a writer runs.
struct Profile {
  const FrameTable& frames;
  const StackTable& stacks;
  const Account& account;
};

// Takes pieces of the output in order.
using OutputSink = std::function<absl::Status(absl::string_view)>;

class ProfileWriter {
 public:
  virtual ~ProfileWriter() = default;
  virtual absl::Status Write(const Profile& profile, const OutputSink& sink) const = 0;
};

struct WriterOptions {
  bool annotate_source = false;  // behind each name the source it came from
};

struct WriterRow {
  absl::string_view format;  // value of --format
  absl::string_view help;
  std::unique_ptr<ProfileWriter> (*make)(const WriterOptions& options);
};
// One row for each format: the only place that lists them.
const std::vector<WriterRow>& WriterTable();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PROFILE_WRITER_H_
