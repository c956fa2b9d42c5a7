#include "export/access.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "os/digest.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kTokenParameter = "token";
constexpr absl::string_view kTokenHint =
    "open the link that clrsampler serve printed, or send Authorization: Bearer TOKEN with a token of its --token-file";
// A form of the method GET, since no request has a body here. It asks for /?token=..., as the link does.
constexpr absl::string_view kLogInPage =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>clrsampler</title>\n"
    "<h1>clrsampler</h1>\n"
    "<p>Profiles take a token: that of the link that <code>clrsampler serve</code> printed, or one of its "
    "<code>--token-file</code>.</p>\n"
    "<form action=\"./\"><label>Token <input type=\"password\" name=\"token\" autocomplete=\"current-password\" "
    "required autofocus></label> <button>Open</button></form>\n</html>\n";
constexpr absl::string_view kLogInPolicy =
    "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

bool IsTokenLetter(char c) { return absl::ascii_isalnum(c) || absl::StrContains("-._~+/=", c); }

// The token of an Authorization field; nullopt: it has none.
std::optional<std::string> TokenOf(absl::string_view authorization) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(absl::StripAsciiWhitespace(authorization), absl::MaxSplits(' ', 1));
  const absl::string_view credentials = absl::StripAsciiWhitespace(parts.second);
  if (absl::EqualsIgnoreCase(parts.first, "Bearer")) return std::string(credentials);
  std::string decoded;
  if (!absl::EqualsIgnoreCase(parts.first, "Basic") || !absl::Base64Unescape(credentials, &decoded)) {
    return std::nullopt;
  }
  const size_t colon = decoded.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return decoded.substr(colon + 1);
}

std::string CookieName(const HttpRequest& request) {
  // The prefix makes browsers refuse a cookie of that name that came without TLS.
  return absl::StrCat(request.tls ? "__Host-" : "", "clrsampler-", request.port);
}

HttpAnswer Unknown(const std::string& path, absl::string_view error) {
  HttpAnswer answer = ErrorAnswer(401, error, kTokenHint);
  if (path == "/") {
    answer = TextAnswer("text/html; charset=utf-8", std::string(kLogInPage));
    answer.status = 401;
    answer.headers.emplace_back("Content-Security-Policy", kLogInPolicy);
  }
  // Not Basic: browsers would ask for a user name and a password.
  answer.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"clrsampler\"");
  return answer;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseTokens(absl::string_view text) {
  std::vector<std::string> tokens;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view token = absl::StripAsciiWhitespace(line);
    if (token.empty() || absl::StartsWith(token, "#")) continue;
    // The text of a wrong token is not repeated: it may be the right one of something else.
    const auto wrong = [](absl::string_view why) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat("a token ", why)),
                      "openssl rand -hex 24 makes one; one token on each line");
    };
    if (token.size() < kMinTokenBytes) return wrong(absl::StrCat("has less than ", kMinTokenBytes, " letters"));
    if (token.size() > kMaxTokenBytes) return wrong(absl::StrCat("has more than ", kMaxTokenBytes, " letters"));
    if (!std::all_of(token.begin(), token.end(), &IsTokenLetter)) {
      return wrong("has other letters than A-Z a-z 0-9 - . _ ~ + / =");
    }
    if (tokens.size() == kMaxTokens) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat("there are more than ", kMaxTokens, " tokens")),
                      "take out those that nobody uses any more");
    }
    tokens.emplace_back(token);
  }
  if (tokens.empty()) {
    return WithHint(absl::InvalidArgumentError("there is no token"), "openssl rand -hex 24 makes one");
  }
  return tokens;
}

bool SameSecret(absl::string_view given, absl::string_view expected) {
  // Digests have one length, and timing their comparison tells nothing about the texts.
  const auto a = Sha256(given), b = Sha256(expected);
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

std::vector<absl::string_view> CookieValues(absl::string_view cookies, absl::string_view name) {
  std::vector<absl::string_view> values;
  for (const absl::string_view one : absl::StrSplit(cookies, ';')) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(one, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(pair.first) == name) values.push_back(absl::StripAsciiWhitespace(pair.second));
  }
  return values;
}

bool Access::KnowsToken(absl::string_view given) const {
  bool known = false;
  for (const std::string& token : policy_.tokens) known |= SameSecret(given, token);
  return known;
}

std::string Access::CookieOf(const HttpRequest& request, absl::string_view token) const {
  const auto digest = Sha256(absl::StrCat("clrsampler cookie\n", policy_.host, "\n", request.port, "\n", token));
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

bool Access::KnowsCookie(const HttpRequest& request) const {
  bool known = false;
  for (const absl::string_view value : CookieValues(request.cookie, CookieName(request))) {
    for (const std::string& token : policy_.tokens) known |= SameSecret(value, CookieOf(request, token));
  }
  return known;
}

// A link with a token sets the cookie and leads on to the same address without it. That address then stands in the
// browser's history.
std::optional<HttpAnswer> Access::LogIn(const HttpRequest& request, const RequestTarget& target) const {
  std::string rest;
  const QueryParameter* given = nullptr;
  for (const QueryParameter& parameter : target.parameters) {
    if (parameter.name == kTokenParameter) {
      given = &parameter;
    } else {
      absl::StrAppend(&rest, rest.empty() ? "?" : "&", PercentEncode(parameter.name), "=",
                      PercentEncode(parameter.value));
    }
  }
  if (given == nullptr || target.path != "/") return std::nullopt;
  if (!policy_.anonymous && !KnowsToken(given->value)) return Unknown(target.path, "this token is not known");
  HttpAnswer answer = TextAnswer("text/plain; charset=utf-8", "");
  answer.status = 303;
  answer.headers.emplace_back("Location", absl::StrCat("./", rest));
  if (!policy_.anonymous) {
    answer.headers.emplace_back("Set-Cookie",
                                absl::StrCat(CookieName(request), "=", CookieOf(request, given->value),
                                             "; Path=/; HttpOnly; SameSite=Strict", request.tls ? "; Secure" : ""));
  }
  return answer;
}

std::optional<HttpAnswer> Access::Check(const HttpRequest& request, const RequestTarget& target) const {
  if (target.path == "/metrics" || target.path == "/-/ready" || target.path == "/-/healthy") return std::nullopt;
  if (request.local_socket) return std::nullopt;
  if (!policy_.anonymous && policy_.tokens.empty()) {
    return ErrorAnswer(403, "profiles are not given over TCP: this server has no token",
                       "ask over its Unix socket, or start clrsampler serve with --token-file FILE, or with "
                       "--allow-anonymous-profiles");
  }
  if (std::optional<HttpAnswer> answer = LogIn(request, target)) return answer;
  if (policy_.anonymous) return std::nullopt;
  if (!request.authorization.empty()) {
    const std::optional<std::string> token = TokenOf(request.authorization);
    if (token && KnowsToken(*token)) return std::nullopt;
    return Unknown(target.path, "this token is not known");
  }
  if (KnowsCookie(request)) return std::nullopt;
  return Unknown(target.path, "profiles take a token");
}

}  // namespace clrsampler
