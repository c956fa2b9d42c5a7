#include "export/page_assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string TextOf(absl::string_view path) {
  const PageFile* asset = FindPageFile(path);
  return asset == nullptr ? "not there" : std::string(asset->bytes);
}

TEST(PageAssetsTest, AreTheFilesOfThePage) {
  EXPECT_THAT(TextOf("/"), AllOf(StartsWith("<!doctype html>"), HasSubstr("<title>clrsampler</title>")));
  EXPECT_THAT(TextOf("/assets/app.js"), HasSubstr("api/timeline"));
  EXPECT_THAT(TextOf("/assets/app.css"), HasSubstr(".timeline"));
  EXPECT_THAT(TextOf("/assets/licences.txt"), HasSubstr("preact"));
  EXPECT_EQ(FindPageFile("/assets/app.js")->content_type, "text/javascript; charset=utf-8");
}

TEST(PageAssetsTest, IndexNamesNothingButAssets) {
  const std::string index = TextOf("/");
  for (const PageFile& asset : PageFiles()) {
    EXPECT_FALSE(asset.bytes.empty()) << asset.path;
    EXPECT_EQ(asset.path.front(), '/');
  }
  for (const char* reference : {"href=\"assets/app.css\"", "src=\"assets/app.js\""}) {
    EXPECT_THAT(index, HasSubstr(reference));
  }
  EXPECT_THAT(index, AllOf(Not(HasSubstr("<style")), Not(HasSubstr("onload")), Not(HasSubstr("<script>"))));
}

TEST(PageAssetsTest, NothingElseIsThere) {
  for (const char* path :
       {"", "/index.html", "/assets/", "/assets/app.js/", "/assets/../assets/app.js", "/assets/app.j"}) {
    EXPECT_EQ(FindPageFile(path), nullptr) << path;
  }
}

TEST(PageAssetsTest, PolicyAllowsNoInlineScript) {
  EXPECT_THAT(std::string(PageSecurityPolicy()), AllOf(HasSubstr("script-src 'self'"), Not(HasSubstr("unsafe"))));
}

}  // namespace
}  // namespace clrsampler
