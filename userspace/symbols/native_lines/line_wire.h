// The messages between the agent and the process that reads debug information. Pure.
//
// One datagram each, little-endian:
//   question  u64 number, u64 file, then up to kMaxQuestionAddresses u64 addresses as linked; the file goes along
//   answer    'A', u64 number, u8 result, then for each address u32 line, u8 exact, u16 bytes, path;
//             of a file that could not be read u16 bytes and a text in place of these
//   lost      'L', u64 number of the question at which the reader ended, 0: none; another reader goes on with the next
//   none      'N', a text and behind a line's end a hint: why there will be no answers
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_WIRE_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr size_t kMaxQuestionAddresses = 32;
inline constexpr size_t kMaxLinePathBytes = 1024;

struct LineQuestion {
  uint64_t number = 0;
  uint64_t file = 0;  // the same number is the same file
  std::vector<uint64_t> addresses;
};

struct NativeLine {
  std::string file;  // UTF-8 without control characters; empty: there is no line
  uint32_t line = 0;
  bool exact = false;  // the code was not optimised

  friend bool operator==(const NativeLine&, const NativeLine&) = default;
};

struct LineAnswer {
  uint64_t number = 0;
  std::string failure;            // why the file can't be read; empty: it was
  std::vector<NativeLine> lines;  // one for each address, of a file that was read
};

std::string LineQuestionBytes(const LineQuestion& question);
// nullopt: no such bytes; the other side is not believed. Likewise below.
std::optional<LineQuestion> ParseLineQuestion(absl::string_view bytes);

// Paths of more than kMaxLinePathBytes are left out with their lines.
std::string LineAnswerBytes(const LineAnswer& answer);
// `addresses`: as many as were asked for.
std::optional<LineAnswer> ParseLineAnswer(absl::string_view bytes, size_t addresses);
// The number of the question that the bytes answer; nullopt: they are no answer.
std::optional<uint64_t> AnsweredQuestion(absl::string_view bytes);

std::string ReaderLostBytes(uint64_t number);
std::optional<uint64_t> ParseReaderLost(absl::string_view bytes);

struct NoAnswers {
  std::string why;
  std::string hint;
};
std::string NoAnswersBytes(const NoAnswers& none);
std::optional<NoAnswers> ParseNoAnswers(absl::string_view bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_LINE_WIRE_H_
