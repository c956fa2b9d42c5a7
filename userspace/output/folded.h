// The folded format: "comm;root;...;leaf COUNT", one line for each distinct stack, sorted by bytes.
//
// Source: stackcollapse-perf.pl and flamegraph.pl of brendangregg/FlameGraph (41fee1f). The text that a frame may
// contain: formats/names/folded_text.h. The first frame is the process: its name, with "-PID" behind it in a profile of
// a whole host. A managed frame with a line has it behind its name, "Shop.Cart.Total:57_[j]". Stacks that read the same
// after sanitising are one line; threads, times and states are left out.
#ifndef CLRSAMPLER_OUTPUT_FOLDED_H_
#define CLRSAMPLER_OUTPUT_FOLDED_H_

#include <utility>

#include "output/profile_writer.h"
#include "profile/model_diff.h"

namespace clrsampler {

class FoldedWriter : public ProfileWriter {
 public:
  explicit FoldedWriter(WriterOptions options = {}) : options_(std::move(options)) {}
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;

 private:
  WriterOptions options_;
};

// Lines with two counts, "comm;root;...;leaf BEFORE AFTER", as difffolded.pl -n writes and flamegraph.pl draws them:
// the first one is normalised to the second recording, and rounded.
absl::Status WriteFoldedDiff(const ProfileDiff& diff, const OutputSink& sink);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_FOLDED_H_
