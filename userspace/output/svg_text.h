// Texts in an SVG picture: harmless whatever they hold, and short enough for their place.
#ifndef CLRSAMPLER_OUTPUT_SVG_TEXT_H_
#define CLRSAMPLER_OUTPUT_SVG_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

// As the content of an element or of a quoted attribute of XML 1.0. Bytes that are no UTF-8, and characters that XML
// does not allow, become U+FFFD.
std::string XmlText(absl::string_view text);

// The name in at most `most` characters: whole, else without its namespace ("Shop.Order.Add", "Order.Add", "Add"), else
// its beginning with two dots; "" if not even three characters have room. Text within <>, () and [] is not parted; dots
// part only `dotted` names, those of managed code.
std::string ShortName(absl::string_view name, bool dotted, size_t most);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_SVG_TEXT_H_
