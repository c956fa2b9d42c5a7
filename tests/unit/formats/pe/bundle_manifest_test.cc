#include "formats/pe/bundle_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

std::string Number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

std::string PrefixedText(absl::string_view text) {
  std::string length;
  size_t rest = text.size();
  for (; rest >= 128; rest >>= 7) length += static_cast<char>(rest | 128);
  return absl::StrCat(length, std::string(1, static_cast<char>(rest)), text);
}

struct Entry {
  std::string path;
  std::string content;
  uint64_t compressed = 0;  // the content is that many bytes, and stands for 10 times as much
};

// A host as HostModel's Bundler writes it: program with the marker, files on multiples of 64, manifest.
std::string Host(uint32_t version, const std::vector<Entry>& entries) {
  // SHA-256 of ".net core bundle".
  constexpr std::array<uint8_t, 32> kMarker = {0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93,
                                               0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
                                               0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae};
  std::string host =
      "\x7F"
      "ELF host program";
  const size_t header_offset = host.size();
  host += std::string(8, '\0');
  host.append(kMarker.begin(), kMarker.end());
  std::string manifest = Number(version, 4) + Number(0, 4) + Number(entries.size(), 4) + PrefixedText("bundle-id");
  if (version >= 2) manifest += std::string(40, '\0');
  for (const Entry& entry : entries) {
    host.resize((host.size() + 63) / 64 * 64);
    manifest +=
        Number(host.size(), 8) + Number(entry.compressed != 0 ? entry.compressed * 10 : entry.content.size(), 8);
    if (version >= 6) manifest += Number(entry.compressed, 8);
    manifest += '\1' + PrefixedText(entry.path);
    host += entry.content;
  }
  const std::string at = Number(host.size(), 8);
  host.replace(header_offset, 8, at);
  return host + manifest;
}

TEST(BundleManifestTest, ListsTheFilesOfEveryVersion) {
  const std::string long_path = std::string(200, 'd') + "/Long.dll";
  for (uint32_t version : {1u, 2u, 6u}) {
    const std::string host = Host(version, {{"App.dll", std::string(100, 'a')}, {long_path, "bb"}, {"Empty.dll", ""}});
    const auto manifest = BundleManifest::Find(AsBytes(host));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(manifest->major_version(), version);
    ASSERT_EQ(manifest->entries().size(), 3u);
    const BundleEntry* app = manifest->Named("App.dll");
    ASSERT_NE(app, nullptr);
    EXPECT_EQ(AsText(AsBytes(host).subspan(app->offset, app->bytes)), std::string(100, 'a'));
    EXPECT_EQ(app->type, 1);
    EXPECT_EQ(app->offset % 64, 0u);
    EXPECT_NE(manifest->Named(long_path), nullptr);
    EXPECT_EQ(manifest->Named("app.dll"), nullptr);
  }
}

TEST(BundleManifestTest, FindsTheFileAtAnOffset) {
  const std::string host =
      Host(6, {{"A.dll", std::string(100, 'a')}, {"B.dll", std::string(10, 'b')}, {"C.dll", "cc", 2}});
  const auto manifest = BundleManifest::Find(AsBytes(host));
  ASSERT_TRUE(manifest.ok());
  const BundleEntry* a = manifest->Named("A.dll");
  const BundleEntry* b = manifest->Named("B.dll");
  EXPECT_EQ(manifest->At(a->offset), a);
  EXPECT_EQ(manifest->At(a->offset + 99), a);
  EXPECT_EQ(manifest->At(a->offset + 100), nullptr);  // padding
  EXPECT_EQ(manifest->At(b->offset), b);
  EXPECT_EQ(manifest->At(0), nullptr);
  EXPECT_EQ(manifest->At(manifest->Named("C.dll")->offset), nullptr);  // compressed: never mapped from the file
}

TEST(BundleManifestTest, OtherFilesAreNoBundles) {
  EXPECT_EQ(BundleManifest::Find({}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(BundleManifest::Find(AsBytes(std::string(1000, '\x8b'))).status().code(), absl::StatusCode::kNotFound);
  std::string host = Host(6, {});
  host.replace(host.find("program") + 7, 8, std::string(8, '\0'));  // an apphost: the marker, but no manifest
  EXPECT_EQ(BundleManifest::Find(AsBytes(host)).status().code(), absl::StatusCode::kNotFound);
}

// A file may have gigabytes that are a hole.
TEST(BundleManifestTest, TheMarkerIsLookedForInTheFirst64MiB) {
  const std::string host = Host(6, {});
  const std::string far(64 << 20, '\0');
  EXPECT_TRUE(BundleManifest::Find(AsBytes(host + far)).ok());
  EXPECT_EQ(BundleManifest::Find(AsBytes(far + host)).status().code(), absl::StatusCode::kNotFound);
}

TEST(BundleManifestTest, DamagedManifestsAreRefused) {
  const std::string host = Host(6, {{"A.dll", std::string(100, 'a')}, {"B.dll", std::string(10, 'b')}});
  const auto whole = BundleManifest::Find(AsBytes(host));
  ASSERT_TRUE(whole.ok());
  const size_t manifest = whole->Named("B.dll")->offset + 10;
  for (size_t size = manifest; size < host.size(); ++size) {
    EXPECT_EQ(BundleManifest::Find(AsBytes(absl::string_view(host).substr(0, size))).status().code(),
              absl::StatusCode::kDataLoss);
  }
  for (size_t at = manifest; at < host.size(); ++at) {
    for (const char value : {'\0', '\x7F', '\xFF'}) {
      std::string changed = host;
      changed[at] = value;
      const auto result = BundleManifest::Find(AsBytes(changed));
      if (!result.ok()) continue;
      for (const BundleEntry& entry : result->entries()) {
        EXPECT_TRUE(SliceAt(AsBytes(changed), entry.offset, entry.bytes).has_value() || entry.compressed_bytes != 0);
      }
    }
  }
  std::string many = host;
  many.replace(manifest + 8, 4, "\xFF\xFF\xFF\x7F");  // two thousand million entries
  EXPECT_EQ(BundleManifest::Find(AsBytes(many)).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace clrsampler
