// The trace and the span that a thread was at work for, as it says itself.
#ifndef CLRSAMPLER_FORMATS_PROFILE_TRACE_LINK_H_
#define CLRSAMPLER_FORMATS_PROFILE_TRACE_LINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// Bytes in the order of W3C Trace Context.
struct TraceLink {
  std::array<char, 16> trace_id{};
  std::array<char, 8> span_id{};

  // An id of zeroes is none, and one without the other names nothing.
  bool valid() const { return trace_id != std::array<char, 16>{} && span_id != std::array<char, 8>{}; }
  absl::string_view trace() const { return {trace_id.data(), trace_id.size()}; }
  absl::string_view span() const { return {span_id.data(), span_id.size()}; }
  std::string TraceText() const { return absl::BytesToHexString(trace()); }
  std::string SpanText() const { return absl::BytesToHexString(span()); }

  // Hexadecimal digits; others leave it as it is.
  void SetTrace(absl::string_view text) { Set(text, trace_id.data(), trace_id.size()); }
  void SetSpan(absl::string_view text) { Set(text, span_id.data(), span_id.size()); }

  friend bool operator==(const TraceLink&, const TraceLink&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const TraceLink& link) {
    return H::combine(std::move(h), link.trace_id, link.span_id);
  }

 private:
  static void Set(absl::string_view text, char* to, size_t bytes) {
    if (text.size() != 2 * bytes || text.find_first_not_of("0123456789abcdefABCDEF") != text.npos) return;
    const std::string id = absl::HexStringToBytes(text);
    id.copy(to, bytes);
  }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_TRACE_LINK_H_
