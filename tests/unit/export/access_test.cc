#include "export/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::string_view kToken = "0123456789abcdef", kOther = "fedcba9876543210";

AccessPolicy WithTokens() { return {.tokens = {std::string(kToken), std::string(kOther)}, .host = "web-3"}; }

HttpRequest Asking(absl::string_view target) {
  HttpRequest request;
  request.method = "GET";
  request.target = std::string(target);
  request.port = 9404;
  return request;
}

std::optional<HttpAnswer> Check(const AccessPolicy& policy, const HttpRequest& request) {
  return Access(policy).Check(request, *ParseTarget(request.target));
}

unsigned StatusOf(const AccessPolicy& policy, const HttpRequest& request) {
  const std::optional<HttpAnswer> answer = Check(policy, request);
  return answer ? answer->status : 200;
}

std::string FieldOf(const HttpAnswer& answer, absl::string_view name) {
  for (const auto& [field, value] : answer.headers) {
    if (field == name) return value;
  }
  return "";
}

TEST(TokensTest, OneOnEachLine) {
  EXPECT_THAT(*ParseTokens("0123456789abcdef\r\n\n# the next one\n  fedcba9876543210==  "),
              ElementsAre("0123456789abcdef", "fedcba9876543210=="));
}

TEST(TokensTest, WhatIsNoTokenIsSaidWithoutRepeatingIt) {
  for (const std::string& text :
       {std::string(""), std::string("\n# none\n"), std::string("secret"), std::string("secret secret secret"),
        std::string("secret;secret;secret"), std::string("secret-secret-\xff secret"), std::string(513, 's'), [] {
          std::string many;
          for (int i = 0; i < 17; ++i) absl::StrAppend(&many, "secret-", 1'000'000'000 + i, "\n");
          return many;
        }()}) {
    const auto tokens = ParseTokens(text);
    ASSERT_TRUE(absl::IsInvalidArgument(tokens.status())) << text;
    EXPECT_FALSE(absl::StrContains(tokens.status().ToString(), "secret")) << tokens.status();
    EXPECT_FALSE(HintOf(tokens.status()).empty());
  }
}

TEST(SameSecretTest, AllLettersCount) {
  EXPECT_TRUE(SameSecret(kToken, kToken));
  for (size_t i = 0; i < kToken.size(); ++i) {
    std::string changed(kToken);
    changed[i] ^= 1;
    EXPECT_FALSE(SameSecret(changed, kToken));
  }
  EXPECT_FALSE(SameSecret("", kToken));
  EXPECT_FALSE(SameSecret(kToken.substr(0, 15), kToken));
  EXPECT_FALSE(SameSecret(absl::StrCat(kToken, "0"), kToken));
}

TEST(CookieValuesTest, EveryValueOfTheName) {
  EXPECT_THAT(CookieValues("a=1; b=2;a = 3 ;aa=4; a", "a"), ElementsAre("1", "3", ""));
  EXPECT_THAT(CookieValues("", "a"), IsEmpty());
  EXPECT_THAT(CookieValues("x=a=1", "a"), IsEmpty());
  EXPECT_THAT(CookieValues("a=x=y", "a"), ElementsAre("x=y"));
}

TEST(AccessTest, MetricsAndReadinessAreEverybodys) {
  for (const char* target : {"/metrics", "/-/ready", "/-/healthy", "/%6detrics"}) {
    EXPECT_EQ(StatusOf({}, Asking(target)), 200u) << target;
    EXPECT_EQ(StatusOf(WithTokens(), Asking(target)), 200u) << target;
  }
  for (const char* target : {"/", "/api/profile", "/assets/app.js", "/metrics/", "/metrics/../api/status", "//metrics",
                             "/api/status?/metrics", "/nothing"}) {
    EXPECT_EQ(StatusOf({}, Asking(target)), 403u) << target;
    EXPECT_EQ(StatusOf(WithTokens(), Asking(target)), 401u) << target;
  }
}

TEST(AccessTest, OverAUnixSocketTheFileSystemHasDecided) {
  HttpRequest request = Asking("/api/profile");
  request.local_socket = true;
  EXPECT_EQ(StatusOf({}, request), 200u);
  EXPECT_EQ(StatusOf(WithTokens(), request), 200u);
}

TEST(AccessTest, AnonymousProfilesAreEverybodys) {
  EXPECT_EQ(StatusOf({.anonymous = true}, Asking("/api/profile")), 200u);
  EXPECT_EQ(StatusOf({.anonymous = true}, Asking("/?token=x")), 303u) << "a link of before goes on working";
}

TEST(AccessTest, WithoutATokenItSaysWhatToDo) {
  const std::optional<HttpAnswer> answer = Check({}, Asking("/api/profile"));
  EXPECT_THAT(*answer->body, HasSubstr("--token-file"));
  EXPECT_THAT(*answer->body, HasSubstr("--allow-anonymous-profiles"));
  EXPECT_EQ(StatusOf({}, Asking("/?token=")), 403u) << "no token is not the empty one";
  HttpRequest request = Asking("/api/profile");
  request.authorization = "Bearer ";
  EXPECT_EQ(StatusOf({}, request), 403u);
}

TEST(AccessTest, ATokenInTheAuthorizationField) {
  HttpRequest request = Asking("/api/profile");
  for (const auto& [value, status] : std::vector<std::pair<std::string, unsigned>>{
           {absl::StrCat("Bearer ", kToken), 200},
           {absl::StrCat("bearer  ", kOther, " "), 200},
           {absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat("pprof:", kToken))), 200},
           {absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat(":", kToken))), 200},
           {absl::StrCat("Basic ", absl::Base64Escape(kToken)), 401},
           {absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat(kToken, ":"))), 401},
           {absl::StrCat("Basic ", kToken, "!"), 401},
           {absl::StrCat("Bearer ", kToken, "0"), 401},
           {absl::StrCat("Bearer", kToken), 401},
           {std::string(kToken), 401},
           {"Bearer", 401},
           {"Bearer ", 401},
           {absl::StrCat("Digest ", kToken), 401}}) {
    request.authorization = value;
    EXPECT_EQ(StatusOf(WithTokens(), request), status) << value;
  }
}

TEST(AccessTest, ALinkSetsTheCookieAndGoesOnWithoutTheToken) {
  const std::optional<HttpAnswer> answer =
      Check(WithTokens(), Asking(absl::StrCat("/?pid=4711&token=", kToken, "&comm=a%26b")));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 303u);
  EXPECT_EQ(FieldOf(*answer, "Location"), "./?pid=4711&comm=a%26b");
  const std::string cookie = FieldOf(*answer, "Set-Cookie");
  EXPECT_THAT(cookie, ::testing::EndsWith("; Path=/; HttpOnly; SameSite=Strict"));
  EXPECT_THAT(cookie, ::testing::StartsWith("clrsampler-9404="));
  EXPECT_FALSE(absl::StrContains(cookie, kToken));

  HttpRequest request = Asking("/api/profile");
  request.cookie = absl::StrCat("a=b; ", cookie.substr(0, cookie.find(';')));
  EXPECT_EQ(StatusOf(WithTokens(), request), 200u);
  request.authorization = "Bearer wrong";
  EXPECT_EQ(StatusOf(WithTokens(), request), 401u) << "what is said aloud counts";
  request.authorization.clear();
  request.port = 9405;
  EXPECT_EQ(StatusOf(WithTokens(), request), 401u) << "of another port";
  request.port = 9404;
  AccessPolicy elsewhere = WithTokens();
  elsewhere.host = "web-4";
  EXPECT_EQ(StatusOf(elsewhere, request), 401u) << "of another host";
  AccessPolicy later = WithTokens();
  later.tokens = {std::string(kOther)};
  EXPECT_EQ(StatusOf(later, request), 401u) << "its token is gone";
}

TEST(AccessTest, ALinkWithAWrongTokenGetsAForm) {
  for (const char* target : {"/?token=wrong", "/?token=", "/", "/?token=0123456789abcdef&token=wrong"}) {
    const std::optional<HttpAnswer> answer = Check(WithTokens(), Asking(target));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 401u) << target;
    EXPECT_THAT(*answer->body, HasSubstr("<form"));
    EXPECT_EQ(FieldOf(*answer, "Set-Cookie"), "");
    EXPECT_EQ(FieldOf(*answer, "WWW-Authenticate"), "Bearer realm=\"clrsampler\"");
  }
  EXPECT_EQ(StatusOf(WithTokens(), Asking(absl::StrCat("/api/status?token=", kToken))), 401u) << "of the page only";
}

TEST(AccessTest, UnderTlsTheCookieStaysUnderTls) {
  HttpRequest request = Asking(absl::StrCat("/?token=", kToken));
  request.tls = true;
  const std::string cookie = FieldOf(*Check(WithTokens(), request), "Set-Cookie");
  EXPECT_THAT(cookie, ::testing::StartsWith("__Host-clrsampler-9404="));
  EXPECT_THAT(cookie, ::testing::EndsWith("; Secure"));
}

}  // namespace
}  // namespace clrsampler
