// The answers that a process that reads debug information may give, once it was taken over. The first byte is the
// number of addresses that it was asked for. Properties: an answer has a line for each of them or a reason, its texts
// hold no control characters, and written again it reads the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "symbols/native_lines/line_wire.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

bool IsClean(absl::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

void CheckAnswer(const LineAnswer& answer, size_t addresses) {
  Require(IsClean(answer.failure));
  Require(answer.failure.empty() ? answer.lines.size() == addresses : answer.lines.empty());
  size_t longest = answer.failure.size();
  for (const NativeLine& line : answer.lines) {
    Require(IsClean(line.file) && (line.line == 0) == line.file.empty());
    longest = std::max(longest, line.file.size());
  }
  if (longest > kMaxLinePathBytes) return;  // bytes that were no text take more as such
  const std::optional<LineAnswer> again = ParseLineAnswer(LineAnswerBytes(answer), addresses);
  Require(again && again->number == answer.number && again->failure == answer.failure && again->lines == answer.lines);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t addresses = data[0] % (kMaxQuestionAddresses + 2);
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const std::optional<LineAnswer> answer = ParseLineAnswer(bytes, addresses)) CheckAnswer(*answer, addresses);
  if (const std::optional<LineQuestion> question = ParseLineQuestion(bytes)) {
    Require(question->addresses.size() <= kMaxQuestionAddresses && LineQuestionBytes(*question) == bytes);
  }
  if (const std::optional<uint64_t> lost = ParseReaderLost(bytes)) Require(ReaderLostBytes(*lost) == bytes);
  if (const std::optional<NoAnswers> none = ParseNoAnswers(bytes)) Require(IsClean(none->why) && IsClean(none->hint));
  return 0;
}
