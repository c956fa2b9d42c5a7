// The rules of docs/frame-names.md for a frame in folded output, written as a checker that shares no code with
// FoldedFrame. Used by the unit test and the fuzz target.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_NAMES_FOLDED_RULES_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_NAMES_FOLDED_RULES_H_

#include <string>
#include <vector>

namespace clrsampler::test_support {

// Code points of strictly valid UTF-8; `ok` false otherwise.
inline std::vector<unsigned> CodePoints(const std::string& s, bool& ok) {
  std::vector<unsigned> out;
  ok = true;
  for (size_t i = 0; i < s.size();) {
    const unsigned char b = static_cast<unsigned char>(s[i]);
    size_t n = b < 0x80 ? 1 : (b >> 5) == 6 ? 2 : (b >> 4) == 14 ? 3 : (b >> 3) == 30 ? 4 : 0;
    if (n == 0 || i + n > s.size()) return ok = false, out;
    unsigned c = n == 1 ? b : b & ((1u << (7 - n)) - 1);
    for (size_t k = 1; k < n; ++k) {
      const unsigned char t = static_cast<unsigned char>(s[i + k]);
      if ((t >> 6) != 2) return ok = false, out;
      c = (c << 6) | (t & 63);
    }
    const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return ok = false, out;
    out.push_back(c);
    i += n;
  }
  return out;
}

// Empty, or the rule that `frame` breaks. `mark` is the suffix that was asked for ("" for none).
inline std::string BrokenFoldedRule(const std::string& frame, const std::string& mark) {
  if (frame.size() > 1024) return "longer than 1 KiB";
  if (frame.size() < mark.size() || frame.compare(frame.size() - mark.size(), mark.size(), mark) != 0) return "no mark";
  const std::string text = frame.substr(0, frame.size() - mark.size());
  if (text.empty()) return "empty";
  bool utf8 = false;
  const std::vector<unsigned> points = CodePoints(frame, utf8);
  if (!utf8) return "not UTF-8";
  for (const unsigned c : points) {
    if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return "control character";
    if (c == ';') return "semicolon";
    if (c == '`') return "backtick";
    if (c == 0xFFFE || c == 0xFFFF) return "not a character of XML 1.0";
    if (c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
        c == 0x205F || c == 0x3000 || c == 0xFEFF) {
      return "white space other than the space";
    }
  }
  if (text.front() == ' ' || text.back() == ' ') return "not trimmed";
  if (text.find("  ") != std::string::npos) return "two spaces";
  if (text == "-" || text == "--") return "a separator";
  for (const char* m : {"_[k]", "_[j]", "_[i]", "_[w]"}) {
    if (text.size() >= 4 && text.compare(text.size() - 4, 4, m) == 0) return "a mark of its own";
  }
  for (const std::string& s : {text, frame}) {  // flamegraph.pl: /^(.*)\s+?(\d+(?:\.\d*)?)$/ again after the count
    size_t end = s.size();
    while (end > 0 && s[end - 1] >= '0' && s[end - 1] <= '9') --end;
    bool digits = end < s.size();
    if (end > 0 && s[end - 1] == '.') {
      size_t whole = end - 1;
      while (whole > 0 && s[whole - 1] >= '0' && s[whole - 1] <= '9') --whole;
      if (whole < end - 1) end = whole, digits = true;
    }
    if (digits && end > 0 && s[end - 1] == ' ') return "ends in a number";
  }
  return "";
}

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_NAMES_FOLDED_RULES_H_
