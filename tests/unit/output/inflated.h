// The text that a page holds in base64 (deflated).
#ifndef CLRSAMPLER_TESTS_UNIT_OUTPUT_INFLATED_H_
#define CLRSAMPLER_TESTS_UNIT_OUTPUT_INFLATED_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace clrsampler::test_support {

inline std::string Inflated(absl::string_view base64) {
  std::string packed, text(1 << 26, '\0');
  EXPECT_TRUE(absl::Base64Unescape(base64, &packed));
  uLongf size = text.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(text.data()), &size, reinterpret_cast<const Bytef*>(packed.data()),
                       packed.size()),
            Z_OK);
  text.resize(size);
  return text;
}

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_OUTPUT_INFLATED_H_
