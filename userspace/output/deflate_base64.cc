#include "output/deflate_base64.h"

#include "absl/strings/escaping.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The content is columns of numbers. The next levels make a page 3 % smaller in twice the time.
constexpr int kLevel = 4;
constexpr size_t kPieceBytes = 3 << 14;  // of deflated data, in base64 without padding

}  // namespace

DeflateBase64::DeflateBase64(const OutputSink& sink) : sink_(sink) {
  auto stream = std::make_unique<z_stream>();
  if (deflateInit(stream.get(), kLevel) == Z_OK) stream_.reset(stream.release());
}

absl::Status DeflateBase64::Deflate(absl::string_view text, int flush) {
  if (!stream_) return absl::ResourceExhaustedError("zlib: not enough memory");
  // zlib takes no const pointer, but does not write there.
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream_->avail_in = static_cast<uInt>(text.size());
  do {
    const size_t before = packed_.size();
    packed_.resize(before + kPieceBytes);
    stream_->next_out = reinterpret_cast<Bytef*>(packed_.data() + before);
    stream_->avail_out = kPieceBytes;
    deflate(stream_.get(), flush);  // with room in the output and a valid stream it can't fail
    packed_.resize(packed_.size() - stream_->avail_out);
    RETURN_IF_ERROR(Encode(false));
  } while (stream_->avail_out == 0);
  return flush == Z_FINISH ? Encode(true) : absl::OkStatus();
}

absl::Status DeflateBase64::Encode(bool all) {
  const size_t size = all ? packed_.size() : packed_.size() - packed_.size() % kPieceBytes;
  if (size == 0) return absl::OkStatus();
  const std::string text = absl::Base64Escape(absl::string_view(packed_).substr(0, size));
  packed_.erase(0, size);
  return sink_(text);
}

}  // namespace clrsampler
