#include "export/http_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

unsigned GuardStatusOf(const HttpRequest& request, const std::string& path = "/api/profile",
                       const HostPolicy& policy = {}) {
  const std::optional<HttpAnswer> refusal = Refuse(request, path, policy);
  return refusal ? refusal->status : 200;
}

HttpRequest From(const std::string& host) {
  HttpRequest request;
  request.method = "GET";
  request.host = host;
  return request;
}

TEST(HttpGuardTest, AnswersForThisHostOnly) {
  for (const char* host : {"localhost", "localhost:9404", "LOCALHOST:9404", "127.0.0.1:9404", "[::1]:9404", "[::1]"}) {
    EXPECT_EQ(GuardStatusOf(From(host)), 200u) << host;
  }
  for (const char* host : {"evil.example", "evil.example:9404", "127.0.0.1.evil.example", "localhost.evil.example",
                           "localhost.", "10.0.0.1:9404", "127.0.0.2", "[::2]:9404", "::1", "localhost:9404.evil"}) {
    const unsigned status = GuardStatusOf(From(host));
    EXPECT_TRUE(status == 421 || status == 400) << host << " got " << status;
  }
  for (const char* host : {"", ":9404", "[::1", "localhost:x", "127.0.0.1:9404:1"}) {
    EXPECT_EQ(GuardStatusOf(From(host)), 400u) << host;
  }
}

TEST(HttpGuardTest, NamesCanBeAllowed) {
  HostPolicy policy;
  policy.names = {"web-3.internal", "10.0.0.7"};
  EXPECT_EQ(GuardStatusOf(From("Web-3.internal:9404"), "/", policy), 200u);
  EXPECT_EQ(GuardStatusOf(From("10.0.0.7:9404"), "/", policy), 200u);
  EXPECT_EQ(GuardStatusOf(From("web-4.internal:9404"), "/", policy), 421u);
}

TEST(HttpGuardTest, WhereAllAddressesAreOursAnyAddressIsAnswered) {
  HostPolicy policy;
  policy.any_address = true;
  EXPECT_EQ(GuardStatusOf(From("10.0.0.7:9404"), "/", policy), 200u);
  EXPECT_EQ(GuardStatusOf(From("[fd00::7]:9404"), "/", policy), 200u);
  EXPECT_EQ(GuardStatusOf(From("evil.example:9404"), "/", policy), 421u) << "a name may resolve to anything";
  EXPECT_EQ(GuardStatusOf(From("10.0.0.7.evil.example"), "/", policy), 421u);
}

TEST(HttpGuardTest, PagesOfOtherOriginsGetNothing) {
  HttpRequest request = From("127.0.0.1:9404");
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:9404", "http://127.0.0.1:8080",
                             "http://localhost:9404", "file://"}) {
    request.origin = origin;
    EXPECT_EQ(GuardStatusOf(request), 403u) << origin;
    EXPECT_EQ(GuardStatusOf(request, "/"), 403u) << origin;
  }
  request.origin = "http://127.0.0.1:9404";
  EXPECT_EQ(GuardStatusOf(request), 200u);
}

TEST(HttpGuardTest, OtherSitesMayOnlyLinkToThePage) {
  HttpRequest request = From("127.0.0.1:9404");
  for (const char* site : {"cross-site", "same-site", "anything"}) {
    request.fetch_site = site;
    request.fetch_mode = "no-cors";
    request.fetch_dest = "script";
    EXPECT_EQ(GuardStatusOf(request), 403u);
    EXPECT_EQ(GuardStatusOf(request, "/"), 403u);
    request.fetch_mode = "navigate";
    request.fetch_dest = "document";
    EXPECT_EQ(GuardStatusOf(request), 403u) << "not even a link to a profile";
    EXPECT_EQ(GuardStatusOf(request, "/"), 200u);
    request.fetch_dest = "iframe";
    EXPECT_EQ(GuardStatusOf(request, "/"), 403u);
  }
  for (const char* site : {"same-origin", "none", ""}) {
    request.fetch_site = site;
    EXPECT_EQ(GuardStatusOf(request), 200u) << site;
  }
}

TEST(HttpGuardTest, AUnixSocketNeedsNoHostButBrowsersStayOut) {
  HttpRequest request = From("whatever");
  request.local_socket = true;
  EXPECT_EQ(GuardStatusOf(request), 200u);
  request.host = "";
  EXPECT_EQ(GuardStatusOf(request), 200u);
}

TEST(HttpGuardTest, AHostileNameIsOnlyQuoted) {
  const std::optional<HttpAnswer> refusal = Refuse(From("<script>\"\xff"), "/", {});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->content_type, "application/json");
  EXPECT_THAT(*refusal->body, ::testing::HasSubstr("\\\"")) << *refusal->body;
}

}  // namespace
}  // namespace clrsampler
