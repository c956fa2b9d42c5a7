#include "export/http_head.h"

#include <gtest/gtest.h>

#include <vector>

namespace clrsampler {
namespace {

unsigned StatusOfHead(const std::vector<HttpField>& fields, const std::string& method = "GET") {
  HttpRequest request;
  request.method = method;
  const std::optional<HttpAnswer> refusal = ReadHead(fields, request);
  return refusal ? refusal->status : 200;
}

TEST(HttpHeadTest, FieldsWhateverTheirCase) {
  HttpRequest request;
  request.method = "GET";
  const std::vector<HttpField> fields = {
      {"HOST", "localhost"}, {"cookie", "a=b"}, {"Sec-Fetch-Site", "none"}, {"X", "y"}};
  EXPECT_FALSE(ReadHead(fields, request));
  EXPECT_EQ(request.host, "localhost");
  EXPECT_EQ(request.cookie, "a=b");
  EXPECT_EQ(request.fetch_site, "none");
}

TEST(HttpHeadTest, TwoOfWhatMustBeOneAreRefused) {
  for (const char* name :
       {"Host", "Content-Length", "Transfer-Encoding", "Authorization", "Origin", "Cookie", "Sec-Fetch-Site"}) {
    EXPECT_EQ(StatusOfHead({{name, "0"}, {"X", "y"}, {name, "0"}}), 400u) << name;
  }
  EXPECT_EQ(StatusOfHead({{"Host", ""}, {"host", "localhost"}}), 400u) << "an empty one is one";
  EXPECT_EQ(StatusOfHead({{"X", "y"}, {"X", "y"}}), 200u);
}

TEST(HttpHeadTest, NoOtherMethodsAndNoBodies) {
  EXPECT_EQ(StatusOfHead({}, "HEAD"), 200u);
  EXPECT_EQ(StatusOfHead({}, "POST"), 405u);
  EXPECT_EQ(StatusOfHead({{"Content-Length", "0"}}), 200u);
  EXPECT_EQ(StatusOfHead({{"Content-Length", "00"}}), 413u);
  EXPECT_EQ(StatusOfHead({{"Content-Length", "5"}}), 413u);
  EXPECT_EQ(StatusOfHead({{"Transfer-Encoding", "chunked"}}), 413u);
}

}  // namespace
}  // namespace clrsampler
