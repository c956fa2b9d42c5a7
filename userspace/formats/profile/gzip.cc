#include "formats/profile/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <climits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;
constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header and checksum

Bytef* InputOf(absl::string_view bytes) {
  // zlib's interface of 1995 takes no pointer to const, but writes nothing.
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

absl::Status DamagedGzip(absl::string_view why) {
  return WithHint(absl::DataLossError(absl::StrCat("the gzip data is damaged: ", why)),
                  "was the file copied as a whole? gzip -t FILE checks it");
}

}  // namespace

bool IsGzip(absl::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return absl::InternalError("zlib could not be initialised");
  const absl::Cleanup end = [&] { inflateEnd(&stream); };
  std::string out;
  std::string chunk(kChunkBytes, '\0');
  size_t taken = 0;
  while (true) {
    if (stream.avail_in == 0) {
      const size_t piece = std::min<size_t>(bytes.size() - taken, UINT_MAX);
      stream.next_in = InputOf(bytes.substr(taken));
      stream.avail_in = static_cast<uInt>(piece);
      taken += piece;
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    const size_t made = chunk.size() - stream.avail_out;
    if (made > max_bytes - out.size()) {
      return WithHint(absl::ResourceExhaustedError(absl::StrCat("unpacked it has more than ", max_bytes >> 20, " MiB")),
                      "no profile is that large; record for a shorter time, or at a lower --frequency");
    }
    out.append(chunk.data(), made);
    if (result == Z_STREAM_END) {
      const bool another = stream.avail_in >= 2 && IsGzip({reinterpret_cast<const char*>(stream.next_in), 2});
      if (!another) return out;  // bytes behind the last member are no part of it
      if (inflateReset(&stream) != Z_OK) return absl::InternalError("zlib could not be reset");
    } else if (result == Z_BUF_ERROR ||
               (result == Z_OK && made == 0 && stream.avail_in == 0 && taken == bytes.size())) {
      return DamagedGzip("it ends too early");
    } else if (result != Z_OK) {
      return DamagedGzip(stream.msg != nullptr ? stream.msg : "zlib gave it up");
    }
  }
}

GzipStream::GzipStream(const Sink& sink)
    : sink_(sink), stream_(std::make_unique<z_stream>()), buffer_(kChunkBytes, '\0') {
  *stream_ = {};
  // The fastest level: the next ones make profiles a sixth smaller and take twice as long.
  if (deflateInit2(stream_.get(), Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    stream_.reset();
  }
}

GzipStream::~GzipStream() {
  if (stream_) deflateEnd(stream_.get());
}

absl::Status GzipStream::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const absl::string_view piece = bytes.substr(0, 1 << 30);
    RETURN_IF_ERROR(Run(piece, Z_NO_FLUSH));
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status GzipStream::Finish() { return Run({}, Z_FINISH); }

absl::Status GzipStream::Run(absl::string_view bytes, int flush) {
  if (!stream_) return absl::ResourceExhaustedError("zlib could not be initialised: no memory");
  stream_->next_in = InputOf(bytes);
  stream_->avail_in = static_cast<uInt>(bytes.size());
  int result;
  do {
    stream_->next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_->avail_out = static_cast<uInt>(buffer_.size());
    result = deflate(stream_.get(), flush);
    const size_t made = buffer_.size() - stream_->avail_out;
    if (made > 0) RETURN_IF_ERROR(sink_(absl::string_view(buffer_.data(), made)));
  } while (stream_->avail_out == 0 || (flush == Z_FINISH && result == Z_OK));
  return absl::OkStatus();
}

}  // namespace clrsampler
