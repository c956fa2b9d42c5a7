// Text, deflated (zlib's format) and then in base64: a profile in an HTML page. It streams.
#ifndef CLRSAMPLER_OUTPUT_DEFLATE_BASE64_H_
#define CLRSAMPLER_OUTPUT_DEFLATE_BASE64_H_

#include <zlib.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "output/profile_writer.h"

namespace clrsampler {

// Append any number of times, then Finish once. Both fail only as the sink does, or for want of memory.
class DeflateBase64 {
 public:
  explicit DeflateBase64(const OutputSink& sink);

  absl::Status Append(absl::string_view text) { return Deflate(text, Z_NO_FLUSH); }
  absl::Status Finish() { return Deflate("", Z_FINISH); }

 private:
  struct EndDeflate {
    void operator()(z_stream* stream) const {
      deflateEnd(stream);
      delete stream;
    }
  };

  absl::Status Deflate(absl::string_view text, int flush);
  absl::Status Encode(bool all);

  const OutputSink& sink_;
  std::unique_ptr<z_stream, EndDeflate> stream_;  // null: zlib has no memory
  std::string packed_;                            // not yet in base64
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_DEFLATE_BASE64_H_
