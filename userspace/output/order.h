// Function orders for linkers: the symbols of one native image, one a line, lines of '#' say what they are of.
//
// Read by lld (--symbol-ordering-file), ld64 (-order_file), and the NativeAOT compiler (--orderfile); docs/
// compiler-feedback.md has the commands, and what other linkers take. Symbols that several functions of the image share
// (static functions of one name) stand once.
#ifndef CLRSAMPLER_OUTPUT_ORDER_H_
#define CLRSAMPLER_OUTPUT_ORDER_H_

#include <utility>

#include "output/profile_writer.h"

namespace clrsampler {

class OrderWriter : public ProfileWriter {
 public:
  explicit OrderWriter(WriterOptions options) : options_(std::move(options)) {}
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;

 private:
  const WriterOptions options_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_ORDER_H_
