// gzip (RFC 1952), by zlib: pprof's files are compressed, and any file that we read may be.
#ifndef CLRSAMPLER_FORMATS_PROFILE_GZIP_H_
#define CLRSAMPLER_FORMATS_PROFILE_GZIP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct z_stream_s;

namespace clrsampler {

// By the magic number of the header.
bool IsGzip(absl::string_view bytes);

// All members of the file, one behind the other. An error if it is cut off, damaged, or more than `max_bytes` when
// unpacked; memory is bounded by `max_bytes` whatever the file claims.
absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes);

// Compresses a stream; what is written is handed on in pieces. Not movable.
class GzipStream {
 public:
  using Sink = std::function<absl::Status(absl::string_view)>;
  // `sink` is borrowed.
  explicit GzipStream(const Sink& sink);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  absl::Status Write(absl::string_view bytes);
  // Ends the file. Nothing is written after it.
  absl::Status Finish();

 private:
  absl::Status Run(absl::string_view bytes, int flush);

  const Sink& sink_;
  std::unique_ptr<z_stream_s> stream_;
  std::string buffer_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_GZIP_H_
