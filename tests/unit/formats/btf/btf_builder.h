// BTF in pieces, as a compiler would write it.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_BTF_BTF_BUILDER_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_BTF_BTF_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler::test_support {

class BtfBuilder {
 public:
  uint32_t Name(absl::string_view name) {
    if (name.empty()) return 0;
    const uint32_t offset = static_cast<uint32_t>(names_.size());
    names_.append(name.data(), name.size()).push_back('\0');
    return offset;
  }
  // The number of the new type. `count`: of members and the like; `words` stand behind its size or type.
  uint32_t Add(absl::string_view name, uint32_t kind, uint32_t count, uint32_t size_or_type,
               const std::vector<uint32_t>& words = {}) {
    types_.insert(types_.end(), {Name(name), kind << 24 | count, size_or_type});
    types_.insert(types_.end(), words.begin(), words.end());
    return ++added_;
  }
  uint32_t Int(absl::string_view name, uint32_t bytes) { return Add(name, 1, 0, bytes, {8 * bytes}); }
  uint32_t Pointer(uint32_t to) { return Add("", 2, 0, to); }

  std::vector<std::byte> Finish() const {
    const uint32_t type_bytes = static_cast<uint32_t>(4 * types_.size());
    const std::vector<uint32_t> header = {0x0001EB9F, 24,         0,
                                          type_bytes, type_bytes, static_cast<uint32_t>(names_.size())};
    std::vector<std::byte> out(24 + type_bytes + names_.size());
    std::memcpy(out.data(), header.data(), 24);
    std::memcpy(out.data() + 24, types_.data(), type_bytes);
    std::memcpy(out.data() + 24 + type_bytes, names_.data(), names_.size());
    return out;
  }

 private:
  uint32_t added_ = 0;
  std::vector<uint32_t> types_;
  std::string names_ = std::string(1, '\0');
};

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_BTF_BTF_BUILDER_H_
