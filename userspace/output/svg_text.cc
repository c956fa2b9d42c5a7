#include "output/svg_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kReplacement = "\uFFFD";

// Bytes of the well-formed character at the beginning, 0 if there is none; its code in `code`.
size_t CharacterBytes(absl::string_view text, uint32_t& code) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  code = size == 1 ? first : first & (0xffU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  return overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : size;
}

// Besides what XML forbids, control characters and those that change the order of the text around them.
bool IsShown(uint32_t code) {
  const bool reorders = (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                        (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
  return code >= 0x20 && (code < 0x7f || code > 0x9f) && !reorders && (code & 0xfffe) != 0xfffe;
}

size_t Characters(absl::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace

std::string XmlText(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t size = CharacterBytes(text, code);
    if (size == 0 || !IsShown(code)) {
      absl::StrAppend(&out, kReplacement);
    } else if (code == '&') {
      out += "&amp;";
    } else if (code == '<') {
      out += "&lt;";
    } else if (code == '>') {
      out += "&gt;";
    } else if (code == '"') {
      out += "&quot;";
    } else {
      out.append(text.data(), size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string ShortName(absl::string_view name, bool dotted, size_t most) {
  if (Characters(name) <= most) return std::string(name);
  absl::string_view shortest = name;
  int depth = 0;
  // A name in brackets is a sentence, not a qualified name.
  for (size_t i = 1; i + 1 < name.size() && name[0] != '['; ++i) {
    const char c = name[i];
    if (c == '(') break;
    if (c == '<' || c == '[') ++depth;
    if ((c == '>' || c == ']') && depth > 0) --depth;
    if (depth > 0) continue;
    const bool parts = c == '!' || (c == ':' && name[i - 1] == ':') || (dotted && c == '.' && name[i - 1] != '.');
    if (!parts) continue;
    shortest = name.substr(i + 1);
    if (Characters(shortest) <= most) return std::string(shortest);
  }
  if (most < 3) return "";
  size_t bytes = 0;
  for (size_t left = most - 2; bytes < shortest.size(); ++bytes) {
    if ((static_cast<unsigned char>(shortest[bytes]) & 0xc0) != 0x80 && left-- == 0) break;
  }
  return absl::StrCat(shortest.substr(0, bytes), "..");
}

}  // namespace clrsampler
