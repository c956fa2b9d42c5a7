// The article before a word of a sentence: "a task wait", "an event".
#ifndef CLRSAMPLER_OUTPUT_ARTICLE_H_
#define CLRSAMPLER_OUTPUT_ARTICLE_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// By the first letter.
inline std::string WithArticle(absl::string_view text) {
  constexpr absl::string_view kVowels = "aeiou";
  const bool vowel = !text.empty() && kVowels.find(absl::ascii_tolower(text[0])) != absl::string_view::npos;
  return absl::StrCat(vowel ? "an " : "a ", text);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_ARTICLE_H_
