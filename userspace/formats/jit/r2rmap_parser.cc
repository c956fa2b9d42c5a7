#include "formats/jit/r2rmap_parser.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kSignatureToken = 0xFFFFFFFF;
constexpr uint32_t kVersionToken = 0xFFFFFFFE;
constexpr uint32_t kOsToken = 0xFFFFFFFD;
constexpr uint32_t kArchitectureToken = 0xFFFFFFFC;
constexpr uint32_t kAbiToken = 0xFFFFFFFB;
// The name, two numbers, two spaces and the end. A file that is a hole of gigabytes is not searched for its first end.
constexpr size_t kMaxLineBytes = kMaxR2rMapNameBytes + 20;

int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The hexadecimal number at the front of `text` and the space behind it.
bool TakeHex(absl::string_view& text, uint32_t& value) {
  size_t at = 0;
  uint32_t result = 0;
  for (; at < text.size(); ++at) {
    const int digit = Digit(text[at]);
    if (digit < 0) break;
    if (at == 8) return false;
    result = result << 4 | static_cast<uint32_t>(digit);
  }
  if (at == 0 || at == text.size() || text[at] != ' ') return false;
  text.remove_prefix(at + 1);
  value = result;
  return true;
}

bool ParseDecimal(absl::string_view text, uint32_t& value) {
  if (text.empty() || text.size() > 10) return false;
  uint64_t result = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    result = result * 10 + static_cast<uint64_t>(c - '0');
  }
  value = static_cast<uint32_t>(result);
  return result <= UINT32_MAX;
}

bool ParseSignature(absl::string_view text, std::array<uint8_t, 16>& signature) {
  if (text.size() != 32) return false;
  for (size_t i = 0; i < 16; ++i) {
    const int high = Digit(text[2 * i]);
    const int low = Digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    signature[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

struct Line {
  uint32_t rva = 0;
  uint32_t length = 0;
  absl::string_view text;
};

class Lines {
 public:
  explicit Lines(absl::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  size_t number() const { return number_; }

  absl::StatusOr<Line> Next() {
    ++number_;
    const size_t end = rest_.substr(0, kMaxLineBytes).find('\n');
    if (end == absl::string_view::npos) {
      return Bad(rest_.size() >= kMaxLineBytes ? "is too long" : "has no end: the file was cut");
    }
    absl::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    Line line;
    if (!TakeHex(text, line.rva) || !TakeHex(text, line.length)) return Bad("is not \"RVA LENGTH NAME\"");
    if (text.empty() || text.size() > kMaxR2rMapNameBytes) return Bad("has no name, or one that is too long");
    if (std::memchr(text.data(), 0, text.size()) != nullptr) return Bad("holds a zero byte");
    line.text = text;
    return line;
  }

  absl::Status Bad(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat("r2rmap line ", number_, " ", what));
  }

 private:
  absl::string_view rest_;
  size_t number_ = 0;
};

absl::Status TakeNumber(Lines& lines, uint32_t token, absl::string_view what, uint32_t& value) {
  if (lines.done()) return absl::DataLossError(absl::StrCat("r2rmap without ", what));
  ASSIGN_OR_RETURN(const Line line, lines.Next());
  if (line.rva != token || line.length != 0 || !ParseDecimal(line.text, value)) {
    return lines.Bad(absl::StrCat("is not the header line for ", what));
  }
  return absl::OkStatus();
}

absl::StatusOr<R2rMapHeader> TakeHeader(Lines& lines) {
  R2rMapHeader header;
  if (lines.done()) return absl::DataLossError("r2rmap is empty");
  ASSIGN_OR_RETURN(const Line first, lines.Next());
  if (first.rva != kSignatureToken || first.length != 0 || !ParseSignature(first.text, header.signature)) {
    return lines.Bad("is not the signature");
  }
  RETURN_IF_ERROR(TakeNumber(lines, kVersionToken, "version", header.version));
  if (header.version != kR2rMapVersion) {
    return absl::UnimplementedError(absl::StrCat("r2rmap version ", header.version));
  }
  uint32_t os = 0;
  uint32_t architecture = 0;
  uint32_t abi = 0;
  RETURN_IF_ERROR(TakeNumber(lines, kOsToken, "operating system", os));
  RETURN_IF_ERROR(TakeNumber(lines, kArchitectureToken, "architecture", architecture));
  RETURN_IF_ERROR(TakeNumber(lines, kAbiToken, "ABI", abi));
  header.os = static_cast<R2rMapOs>(os);
  header.architecture = static_cast<R2rMapArchitecture>(architecture);
  header.abi = static_cast<R2rMapAbi>(abi);
  return header;
}

std::string WordOrNumber(std::initializer_list<absl::string_view> words, uint32_t value) {
  if (value < words.size()) return std::string(words.begin()[value]);
  return absl::StrCat(value);
}

}  // namespace

absl::StatusOr<R2rMapHeader> ParseR2rMapHeader(absl::string_view text) {
  Lines lines(text);
  return TakeHeader(lines);
}

absl::StatusOr<R2rMap> ParseR2rMap(absl::string_view text, size_t max_rows) {
  Lines lines(text);
  R2rMap map;
  ASSIGN_OR_RETURN(R2rMapHeader header, TakeHeader(lines));
  map.header = header;
  while (!lines.done()) {
    ASSIGN_OR_RETURN(const Line line, lines.Next());
    if (line.rva >= kAbiToken) return lines.Bad("is a header line among the rows");
    if (line.length > UINT32_MAX - line.rva) return lines.Bad("ends outside of any image");
    if (map.rows.size() >= max_rows) {
      return absl::ResourceExhaustedError(
          absl::StrCat("r2rmap line ", lines.number(), " is behind ", max_rows, " rows"));
    }
    map.rows.push_back({line.rva, line.length, line.text});
  }
  return map;
}

std::string R2rMapOsText(R2rMapOs os) {
  return WordOrNumber({"Unknown", "Windows", "Linux", "OSX", "FreeBSD", "NetBSD", "SunOS"}, static_cast<uint32_t>(os));
}

std::string R2rMapArchitectureText(R2rMapArchitecture architecture) {
  return WordOrNumber({"Unknown", "ARM", "ARM64", "X64", "X86", "RiscV64", "LoongArch64"},
                      static_cast<uint32_t>(architecture));
}

std::string R2rMapAbiText(R2rMapAbi abi) {
  return WordOrNumber({"Unknown", "Default", "Armel"}, static_cast<uint32_t>(abi));
}

std::string R2rMapSignatureText(const R2rMapHeader& header) {
  std::string text;
  for (const uint8_t byte : header.signature) absl::StrAppendFormat(&text, "%02X", byte);
  return text;
}

}  // namespace clrsampler
