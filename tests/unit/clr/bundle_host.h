// Single-file programs that tests make up: an ELF header with one loadable segment, the files of the bundle behind it,
// each at a multiple of 64 bytes from kBundleFiles on, and the manifest.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_BUNDLE_HOST_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_BUNDLE_HOST_H_

#include <cstdint>
#include <string>
#include <vector>

namespace clrsampler {

struct BundledFile {
  std::string path, content;
  bool compressed = false;  // as one block without compression, so of at most 65,535 bytes
};

constexpr uint64_t kBundleFiles = 4096;

inline std::string BundleHost(const std::vector<BundledFile>& files) {
  std::string host(512, '\0');
  const auto put = [&](size_t at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) host[at + i] = static_cast<char>(value >> 8 * i);
  };
  const auto append = [](std::string& text, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  };
  host.replace(0, 6,
               "\x7F"
               "ELF\2\1");
  put(32, 64, 8), put(54, 56, 2), put(56, 1, 2), put(64, 1, 4), put(72, 0, 8), put(96, 512, 8);
  const unsigned char marker[] = {0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93,
                                  0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
                                  0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae};
  host.replace(200, 32, reinterpret_cast<const char*>(marker), 32);
  host.resize(kBundleFiles);
  std::string rows;
  for (const BundledFile& file : files) {
    host.resize((host.size() + 63) / 64 * 64);
    const size_t begin = host.size(), bytes = file.content.size();
    if (file.compressed) host += '\1', append(host, bytes, 2), append(host, ~bytes, 2);
    host += file.content;
    append(rows, begin, 8), append(rows, bytes, 8), append(rows, file.compressed ? host.size() - begin : 0, 8);
    rows += '\1', append(rows, file.path.size(), 1), rows += file.path;
  }
  put(192, host.size(), 8);
  append(host, 6, 4), append(host, 0, 4), append(host, files.size(), 4), host += "\2id", host += std::string(40, '\0');
  return host + rows;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_BUNDLE_HOST_H_
