#include "export/push_protocol.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/names/utf8.h"

namespace clrsampler {

std::string QuotedAnswer(const std::string& answer) {
  constexpr size_t kMostBytes = 200;
  std::string text = WellFormedUtf8(absl::StripAsciiWhitespace(absl::string_view(answer).substr(0, kMostBytes)));
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return text.empty() ? "" : absl::StrCat(" (", text, ")");
}

}  // namespace clrsampler
