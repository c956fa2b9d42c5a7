// The tables of `clrsampler top` as lines of a given width.
#ifndef CLRSAMPLER_OUTPUT_TOP_TEXT_H_
#define CLRSAMPLER_OUTPUT_TOP_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "profile/top_table.h"

namespace clrsampler {

// Without line ends; names are made printable, cut where the line ends.
std::string TopProcessHeader(size_t width);
std::string TopProcessLine(const TopProcess& process, size_t width);
std::string TopMethodHeader(size_t width);
// `seconds` and `total_ns`: of the table.
std::string TopMethodLine(const MethodWeight& method, double seconds, uint64_t total_ns, size_t width);
// "19.8 s: 3,942 samples, 99.9 % of frames named, nothing lost"
std::string TopStateLine(const TopTable& table);

// The first `width` characters of UTF-8 text, padded with spaces to them if `pad`.
std::string FitWidth(const std::string& text, size_t width, bool pad);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_TOP_TEXT_H_
