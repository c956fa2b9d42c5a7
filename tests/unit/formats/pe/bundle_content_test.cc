#include "formats/pe/bundle_content.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

std::string Deflated(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(BundleContentTest, OnlyWhatTheManifestPromisesIsContent) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i * i);
  const std::string compressed = Deflated(text);
  const std::string host = "front" + compressed + "back";
  const auto inflate = [&](uint64_t bytes, uint64_t compressed_bytes, uint64_t max_bytes = 1 << 20) {
    return InflateBundleEntry(AsBytes(host), {5, bytes, compressed_bytes, 1, "a.dll"}, max_bytes);
  };
  const auto whole = inflate(text.size(), compressed.size());
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(AsText(*whole), text);
  EXPECT_EQ(inflate(text.size() - 1, compressed.size()).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(inflate(text.size() + 1, compressed.size()).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(inflate(text.size(), compressed.size() - 1).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(inflate(text.size(), host.size()).status().code(), absl::StatusCode::kDataLoss) << "outside the file";
  EXPECT_EQ(inflate(0, compressed.size()).status().code(), absl::StatusCode::kDataLoss);
}

TEST(BundleContentTest, APromiseThatDeflateCannotKeepAllocatesNothing) {
  const std::string host(100, 'x');
  EXPECT_EQ(InflateBundleEntry(AsBytes(host), {0, 1 << 30, 10, 1, "a.dll"}, UINT32_MAX).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(InflateBundleEntry(AsBytes(host), {0, 1 << 20, 10, 1, "a.dll"}, 1 << 19).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace clrsampler
