#include "profile/method_text.h"

#include <algorithm>

namespace clrsampler {
namespace {

// Behind the arguments of a class that begin there, if any do.
size_t BehindArguments(absl::string_view text, size_t at) {
  if (at >= text.size() || text[at] != '[') return at;
  int depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return i + 1;
  }
  return at;
}

// Behind what joins two names there; npos: nothing does.
size_t BehindJoint(absl::string_view text, size_t at) {
  if (at < text.size() && (text[at] == '.' || text[at] == '+')) return at + 1;
  const size_t colons = BehindArguments(text, at);
  return text.substr(std::min(colons, text.size()), 2) == "::" ? colons + 2 : absl::string_view::npos;
}

bool IsAt(absl::string_view text, size_t at, absl::string_view method) {
  for (const char c : method) {
    if (c == '.') {
      at = BehindJoint(text, at);
      if (at == absl::string_view::npos) return false;
    } else if (at >= text.size() || text[at++] != c) {
      return false;
    }
  }
  return true;
}

}  // namespace

size_t FindMethod(absl::string_view text, absl::string_view method) {
  if (method.empty()) return 0;
  for (size_t at = text.find(method[0]); at != absl::string_view::npos; at = text.find(method[0], at + 1)) {
    if (IsAt(text, at, method)) return at;
  }
  return absl::string_view::npos;
}

}  // namespace clrsampler
