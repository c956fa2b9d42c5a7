// Lines of /proc/kallsyms (kernel/kallsyms.c, s_show): "ffffffff81000000 T _text" and, for a module or a BPF program,
// "\t[name]" behind. 120,000 to 250,000 lines: the loop is in the header so that the caller's filter is inlined.
#ifndef CLRSAMPLER_FORMATS_PROC_KALLSYMS_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_KALLSYMS_TEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace clrsampler {

struct KallsymsLine {
  uint64_t address = 0;
  char type = '?';           // as nm prints it; text is t, T, w, W
  absl::string_view name;    // borrowed from the text
  absl::string_view module;  // without brackets; empty for the kernel itself; "bpf" for BPF programs and trampolines

  bool is_code() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
};

namespace internal {

constexpr std::array<int8_t, 256> HexDigits() {
  std::array<int8_t, 256> digits{};
  for (int8_t& digit : digits) digit = -1;
  for (int i = 0; i < 10; ++i) digits['0' + i] = static_cast<int8_t>(i);
  for (int i = 0; i < 6; ++i) digits['a' + i] = digits['A' + i] = static_cast<int8_t>(10 + i);
  return digits;
}
inline constexpr std::array<int8_t, 256> kHexDigits = HexDigits();

// [at, end) is one line without its newline.
inline bool ParseKallsymsLine(const char* at, const char* end, KallsymsLine& line) {
  uint64_t address = 0;
  const char* const digits = at;
  while (at < end && kHexDigits[static_cast<uint8_t>(*at)] >= 0) {
    address = address << 4 | static_cast<uint64_t>(kHexDigits[static_cast<uint8_t>(*at++)]);
  }
  if (at == digits || at - digits > 16 || end - at < 4 || at[0] != ' ' || at[2] != ' ') return false;
  line.address = address;
  line.type = at[1];
  at += 3;
  const char* name_end = static_cast<const char*>(std::memchr(at, '\t', static_cast<size_t>(end - at)));
  line.module = {};
  if (name_end == nullptr) {
    name_end = end;
  } else {
    const char* module = name_end + 1;
    if (end - module < 3 || module[0] != '[' || end[-1] != ']') return false;
    line.module = absl::string_view(module + 1, static_cast<size_t>(end - module - 2));
  }
  line.name = absl::string_view(at, static_cast<size_t>(name_end - at));
  return !line.name.empty();
}

}  // namespace internal

// Calls `use(const KallsymsLine&)` for each line in order; returns the number of lines that are none.
template <typename Use>
size_t ForEachKallsymsLine(absl::string_view text, Use&& use) {
  size_t damaged = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  KallsymsLine line;
  while (at < end) {
    const char* line_end = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    if (line_end == nullptr) line_end = end;
    if (internal::ParseKallsymsLine(at, line_end, line)) {
      use(static_cast<const KallsymsLine&>(line));
    } else {
      ++damaged;
    }
    at = line_end + 1;
  }
  return damaged;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_KALLSYMS_TEXT_H_
