#include "formats/names/folded_text.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/names/utf8.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kEllipsis = "\xE2\x80\xA6";  // U+2026
constexpr absl::string_view kUnnamed = "[unnamed]";

// Everything that \s means to some reader: JavaScript counts U+FEFF and U+2028, and its '.' does not match the latter.
bool IsWhitespace(char32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 ||
         c == 0xFEFF;
}

// Character rules. Stops early: what lies behind the limit is cut anyway.
std::string CleanCharacters(absl::string_view text) {
  std::string out;
  out.reserve(std::min(text.size() + 8, kMaxFoldedFrameBytes + 8));
  bool space_due = false;
  while (!text.empty() && out.size() <= kMaxFoldedFrameBytes) {
    const CodePoint c = DecodeUtf8(text);
    absl::string_view piece = text.substr(0, std::max<size_t>(c.bytes, 1));
    text.remove_prefix(piece.size());
    if (c.bytes != 0 && IsWhitespace(c.value)) {
      space_due = !out.empty();
      continue;
    }
    if (c.bytes != 0 && (c.value < 0x20 || (c.value >= 0x7F && c.value <= 0x9F))) continue;
    if (c.bytes == 0 || c.value == 0xFFFE || c.value == 0xFFFF)
      piece = kReplacementCharacter;  // XML 1.0 forbids the last two
    if (c.value == ';') piece = ":";
    if (c.value == '`') piece = "~";  // flamegraph.pl colours by a hash of the part behind a backtick
    if (space_due) out.push_back(' ');
    space_due = false;
    out.append(piece.data(), piece.size());
  }
  return out;
}

void CutTo(size_t limit, std::string& out) {
  if (out.size() <= limit) return;
  size_t end = limit - kEllipsis.size();
  while (end > 0 && (static_cast<uint8_t>(out[end]) & 0xC0) == 0x80) --end;
  while (end > 0 && out[end - 1] == ' ') --end;
  out.resize(end);
  out.append(kEllipsis.data(), kEllipsis.size());
}

bool EndsInMark(absl::string_view text) {
  return text.size() >= 4 && text[text.size() - 1] == ']' && text[text.size() - 3] == '[' &&
         text[text.size() - 4] == '_' && absl::StrContains("kjiw", text[text.size() - 2]);
}

// " 42", " 42.5" and " 42." at the end would be read as the count of a differential line.
void JoinTrailingNumber(std::string& out) {
  size_t at = out.size();
  const auto skip_digits = [&] {
    while (at > 0 && absl::ascii_isdigit(static_cast<unsigned char>(out[at - 1]))) --at;
  };
  skip_digits();
  if (at > 0 && out[at - 1] == '.') {
    --at;
    const size_t dot = at;
    skip_digits();
    if (at == dot) return;  // no digit before the dot
  } else if (at == out.size()) {
    return;
  }
  if (at > 0 && out[at - 1] == ' ') out[at - 1] = '_';
}

}  // namespace

std::string FoldedFrame(absl::string_view text, FrameSuffix suffix, uint32_t line) {
  const absl::string_view mark = suffix == FrameSuffix::kKernel    ? "_[k]"
                                 : suffix == FrameSuffix::kManaged ? "_[j]"
                                 : suffix == FrameSuffix::kInlined ? "_[i]"
                                                                   : "";
  const std::string place = line == 0 ? "" : absl::StrCat(":", line);
  std::string out = CleanCharacters(text);
  CutTo(kMaxFoldedFrameBytes - mark.size() - place.size(), out);
  if (out.empty()) out.assign(kUnnamed.data(), kUnnamed.size());
  out += place;
  if (out == "-" || out == "--") out = "(" + out + ")";  // separators between kernel and user, waker and sleeper
  JoinTrailingNumber(out);
  if (EndsInMark(out)) out[out.size() - 4] = '-';  // the text's own; only ours is a mark
  out.append(mark.data(), mark.size());
  return out;
}

FoldedLine SplitFoldedLine(absl::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t line = 0;
  if (colon == absl::string_view::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &line) || line == 0 ||
      absl::StrCat(line) != text.substr(colon + 1)) {
    return {text, 0};
  }
  return {text.substr(0, colon), line};
}

std::string FoldedComm(absl::string_view comm) {
  std::string out = FoldedFrame(comm, FrameSuffix::kNone);
  std::replace(out.begin(), out.end(), ' ', '_');
  return FoldedFrame(out, FrameSuffix::kNone);  // "a [k]" has become "a_[k]"
}

}  // namespace clrsampler
