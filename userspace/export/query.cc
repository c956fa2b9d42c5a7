#include "export/query.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "formats/names/utf8.h"
#include "os/clock.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The clocks of most languages end in the year 2262. Sums of two such times fit.
constexpr uint64_t kLatestUnixNs = std::numeric_limits<int64_t>::max();
constexpr absl::string_view kTimeHint =
    "unix seconds (1790000000.5), RFC 3339 (2026-11-22T10:00:00Z), now, or as far back as -90s, -5m, -2h, -1d";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

absl::StatusOr<std::string> Decode(absl::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return WithHint(absl::InvalidArgumentError("a % in the address is not followed by two hexadecimal digits"),
                        "write %25 for a percent sign");
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError("the address has a control character");
    }
    decoded.push_back(c);
  }
  if (WellFormedUtf8(decoded) != decoded) return absl::InvalidArgumentError("the address is no UTF-8");
  return decoded;
}

// Digits, and perhaps a dot and more digits, to nanoseconds; `unit_ns` for one. nullopt: it is none, or too large.
std::optional<uint64_t> Scaled(absl::string_view text, uint64_t unit_ns) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('.', 1));
  uint64_t whole = 0;
  if (parts.first.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(parts.first[0])) ||
      !absl::SimpleAtoi(parts.first, &whole) || whole > kLatestUnixNs / unit_ns) {
    return std::nullopt;
  }
  uint64_t ns = whole * unit_ns;
  if (absl::StrContains(text, '.') && parts.second.empty()) return std::nullopt;
  uint64_t place = unit_ns;
  for (const char c : parts.second) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    place /= 10;  // what is less than a nanosecond is left out
    ns += place * static_cast<uint64_t>(c - '0');
  }
  if (ns > kLatestUnixNs) return std::nullopt;
  return ns;
}

std::optional<uint64_t> TimeBack(absl::string_view text, uint64_t now_unix_ns) {
  if (text.size() < 2) return std::nullopt;
  uint64_t unit = 0;
  switch (text.back()) {
    case 's':
      unit = kSecondNs;
      break;
    case 'm':
      unit = 60 * kSecondNs;
      break;
    case 'h':
      unit = 3600 * kSecondNs;
      break;
    case 'd':
      unit = 24 * 3600 * kSecondNs;
      break;
    default:
      return std::nullopt;
  }
  const std::optional<uint64_t> back = Scaled(text.substr(0, text.size() - 1), unit);
  if (!back) return std::nullopt;
  return now_unix_ns - std::min(*back, now_unix_ns);
}

}  // namespace

absl::StatusOr<RequestTarget> ParseTarget(absl::string_view target) {
  if (target.size() > kMaxTargetBytes) return absl::InvalidArgumentError("the address is too long");
  const size_t mark = target.find('?');
  RequestTarget parsed;
  ASSIGN_OR_RETURN(parsed.path, Decode(target.substr(0, mark), false));
  if (!absl::StartsWith(parsed.path, "/")) return absl::InvalidArgumentError("the address has no path");
  if (mark == absl::string_view::npos) return parsed;
  for (const absl::string_view part : absl::StrSplit(target.substr(mark + 1), '&', absl::SkipEmpty())) {
    if (parsed.parameters.size() == kMaxQueryParameters) return absl::InvalidArgumentError("too many parameters");
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(part, absl::MaxSplits('=', 1));
    ASSIGN_OR_RETURN(std::string name, Decode(parts.first, true));
    ASSIGN_OR_RETURN(std::string value, Decode(parts.second, true));
    parsed.parameters.push_back({std::move(name), std::move(value)});
  }
  return parsed;
}

std::string PercentEncode(absl::string_view text) {
  constexpr absl::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || absl::StrContains("-._~", c)) {
      encoded.push_back(c);
    } else {
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return encoded;
}

absl::StatusOr<uint64_t> ParseQueryTime(absl::string_view text, uint64_t now_unix_ns) {
  std::optional<uint64_t> time;
  if (text == "now") {
    time = now_unix_ns;
  } else if (absl::StartsWith(text, "-")) {
    time = TimeBack(text.substr(1), now_unix_ns);
  } else if (absl::StrContains(text, 'T')) {
    std::string rfc3339(text);
    // The + of an offset that was not encoded arrives as a space.
    for (char& c : rfc3339) c = c == ' ' ? '+' : c;
    absl::Time parsed;
    if (absl::ParseTime(absl::RFC3339_full, rfc3339, &parsed, nullptr) && parsed >= absl::UnixEpoch() &&
        parsed <= absl::FromUnixNanos(static_cast<int64_t>(kLatestUnixNs))) {
      time = static_cast<uint64_t>(absl::ToUnixNanos(parsed));
    }
  } else {
    time = Scaled(text, kSecondNs);
  }
  if (!time) return WithHint(absl::InvalidArgumentError(absl::StrCat(text, " is no time")), kTimeHint);
  return *time;
}

QueryReader::QueryReader(const RequestTarget& target, uint64_t now_unix_ns)
    : target_(target), now_unix_ns_(now_unix_ns), taken_(target.parameters.size(), false) {}

void QueryReader::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

const QueryParameter* QueryReader::Take(absl::string_view name) {
  known_.emplace_back(name);
  const QueryParameter* found = nullptr;
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (target_.parameters[i].name != name) continue;
    if (found != nullptr) Fail(absl::InvalidArgumentError(absl::StrCat(name, " is given more than once")));
    taken_[i] = true;
    found = &target_.parameters[i];
  }
  return found;
}

std::optional<std::string> QueryReader::Text(absl::string_view name) {
  const QueryParameter* parameter = Take(name);
  if (parameter == nullptr) return std::nullopt;
  if (parameter->value.empty()) Fail(absl::InvalidArgumentError(absl::StrCat(name, " is empty")));
  return parameter->value;
}

uint64_t QueryReader::Time(absl::string_view name, absl::string_view fallback) {
  const QueryParameter* parameter = Take(name);
  const absl::StatusOr<uint64_t> time =
      ParseQueryTime(parameter == nullptr ? fallback : parameter->value, now_unix_ns_);
  if (time.ok()) return *time;
  Fail(Annotate(time.status(), name));
  return now_unix_ns_;
}

std::optional<uint64_t> QueryReader::OptionalNumber(absl::string_view name, uint64_t least, uint64_t most) {
  const QueryParameter* parameter = Take(name);
  if (parameter == nullptr) return std::nullopt;
  uint64_t number = 0;
  const bool digits =
      !parameter->value.empty() && parameter->value.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || !absl::SimpleAtoi(parameter->value, &number) || number < least || number > most) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat(name, " is ", parameter->value, ", and must be a whole number from ", least, " to ", most)));
    return least;
  }
  return number;
}

uint64_t QueryReader::Number(absl::string_view name, uint64_t fallback, uint64_t least, uint64_t most) {
  return OptionalNumber(name, least, most).value_or(fallback);
}

std::string QueryReader::Word(absl::string_view name, std::initializer_list<absl::string_view> words) {
  const QueryParameter* parameter = Take(name);
  if (parameter == nullptr) return std::string(*words.begin());
  for (const absl::string_view word : words) {
    if (parameter->value == word) return std::string(word);
  }
  Fail(WithHint(absl::InvalidArgumentError(absl::StrCat(name, "=", parameter->value, " is not known")),
                absl::StrCat(name, " is one of ", absl::StrJoin(words, ", "))));
  return std::string(*words.begin());
}

void QueryReader::Range(absl::string_view prefix, bool required, uint64_t& from_unix_ns, uint64_t& to_unix_ns) {
  const std::string from = absl::StrCat(prefix, "from"), to = absl::StrCat(prefix, "to");
  const auto given = [&](const std::string& name) {
    for (const QueryParameter& parameter : target_.parameters) {
      if (parameter.name == name) return true;
    }
    return false;
  };
  if (required && !(given(from) && given(to))) {
    Fail(WithHint(absl::InvalidArgumentError(absl::StrCat(from, " and ", to, " are missing")),
                  "they say which time to compare with"));
  }
  from_unix_ns = Time(from, "-5m");
  to_unix_ns = Time(to, "now");
  if (from_unix_ns >= to_unix_ns) {
    Fail(WithHint(absl::InvalidArgumentError(absl::StrCat(from, " is not before ", to)), kTimeHint));
  }
}

HistorySelection QueryReader::Selection() {
  HistorySelection selection;
  Range("", false, selection.from_unix_ns, selection.to_unix_ns);
  if (const auto pid = OptionalNumber("pid", 1, std::numeric_limits<int32_t>::max())) {
    selection.pid = static_cast<uint32_t>(*pid);
  }
  selection.comm = Text("comm");
  selection.container = Text("container");
  selection.thread = Text("thread");
  return selection;
}

absl::Status QueryReader::Finish() {
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    Fail(WithHint(
        absl::InvalidArgumentError(absl::StrCat("the parameter ", target_.parameters[i].name, " is not known here")),
        known_.empty() ? "this address takes no parameters" : absl::StrCat("known are ", absl::StrJoin(known_, ", "))));
  }
  return status_;
}

}  // namespace clrsampler
