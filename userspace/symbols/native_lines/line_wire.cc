#include "symbols/native_lines/line_wire.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/byte_reader.h"
#include "formats/names/utf8.h"

namespace clrsampler {
namespace {

constexpr char kAnswer = 'A';
constexpr char kLost = 'L';
constexpr char kNone = 'N';
constexpr uint8_t kRead = 0;
constexpr uint8_t kFailed = 1;
constexpr size_t kAnswerHeader = 1 + sizeof(uint64_t);  // before the result

template <typename T>
void Put(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void PutText(std::string& out, absl::string_view text) {
  Put(out, static_cast<uint16_t>(text.size()));
  out.append(text.data(), text.size());
}

// Takes values off the front; once something is missing, everything is.
class Cursor {
 public:
  explicit Cursor(absl::string_view bytes) : bytes_(AsBytes(bytes)) {}

  template <typename T>
  T Take() {
    const std::optional<T> value = LoadAt<T>(bytes_, at_);
    if (!value) return Fail<T>();
    at_ += sizeof(T);
    return *value;
  }
  absl::string_view TakeText() {
    const auto size = Take<uint16_t>();
    const auto text = SliceAt(bytes_, at_, size);
    if (!text || size > kMaxLinePathBytes) return Fail<absl::string_view>();
    at_ += size;
    return AsText(*text);
  }
  // All bytes were taken, and none were missing.
  bool whole() const { return !failed_ && at_ == bytes_.size(); }
  bool failed() const { return failed_; }

 private:
  template <typename T>
  T Fail() {
    failed_ = true;
    return T{};
  }

  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  bool failed_ = false;
};

std::string Clean(absl::string_view text) {
  std::string clean = WellFormedUtf8(text);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return clean;
}

NativeLine TakeLine(Cursor& cursor) {
  NativeLine line;
  line.line = cursor.Take<uint32_t>();
  line.exact = cursor.Take<uint8_t>() != 0;
  line.file = Clean(cursor.TakeText());
  if (line.line == 0 || line.file.empty()) return NativeLine();
  return line;
}

}  // namespace

std::string LineQuestionBytes(const LineQuestion& question) {
  std::string bytes;
  Put(bytes, question.number);
  Put(bytes, question.file);
  for (const uint64_t address : question.addresses) Put(bytes, address);
  return bytes;
}

std::optional<LineQuestion> ParseLineQuestion(absl::string_view bytes) {
  constexpr size_t kHeader = 2 * sizeof(uint64_t);
  if (bytes.size() <= kHeader || bytes.size() % sizeof(uint64_t) != 0 ||
      bytes.size() > kHeader + kMaxQuestionAddresses * sizeof(uint64_t)) {
    return std::nullopt;
  }
  Cursor cursor(bytes);
  LineQuestion question;
  question.number = cursor.Take<uint64_t>();
  question.file = cursor.Take<uint64_t>();
  while (!cursor.whole()) question.addresses.push_back(cursor.Take<uint64_t>());
  return question;
}

std::string LineAnswerBytes(const LineAnswer& answer) {
  std::string bytes(1, kAnswer);
  Put(bytes, answer.number);
  Put(bytes, answer.failure.empty() ? kRead : kFailed);
  if (!answer.failure.empty()) {
    PutText(bytes, absl::string_view(answer.failure).substr(0, kMaxLinePathBytes));
    return bytes;
  }
  for (const NativeLine& line : answer.lines) {
    const bool fits = line.file.size() <= kMaxLinePathBytes;
    Put(bytes, fits ? line.line : uint32_t{0});
    Put(bytes, static_cast<uint8_t>(line.exact));
    PutText(bytes, fits ? absl::string_view(line.file) : "");
  }
  return bytes;
}

std::optional<LineAnswer> ParseLineAnswer(absl::string_view bytes, size_t addresses) {
  const std::optional<uint64_t> number = AnsweredQuestion(bytes);
  if (!number || addresses > kMaxQuestionAddresses) return std::nullopt;
  LineAnswer answer;
  answer.number = *number;
  Cursor cursor(bytes.substr(kAnswerHeader));
  const auto result = cursor.Take<uint8_t>();
  if (result == kFailed) {
    answer.failure = Clean(cursor.TakeText());
    if (!cursor.whole() || answer.failure.empty()) return std::nullopt;
    return answer;
  }
  for (size_t i = 0; i < addresses && !cursor.failed(); ++i) answer.lines.push_back(TakeLine(cursor));
  if (result != kRead || !cursor.whole()) return std::nullopt;
  return answer;
}

std::optional<uint64_t> AnsweredQuestion(absl::string_view bytes) {
  if (bytes.empty() || bytes[0] != kAnswer) return std::nullopt;
  return LoadAt<uint64_t>(AsBytes(bytes), 1);
}

std::string ReaderLostBytes(uint64_t number) {
  std::string bytes(1, kLost);
  Put(bytes, number);
  return bytes;
}

std::optional<uint64_t> ParseReaderLost(absl::string_view bytes) {
  if (bytes.size() != 1 + sizeof(uint64_t) || bytes[0] != kLost) return std::nullopt;
  return LoadAt<uint64_t>(AsBytes(bytes), 1);
}

std::string NoAnswersBytes(const NoAnswers& none) {
  return absl::StrCat(absl::string_view(&kNone, 1), none.why, "\n", none.hint);
}

std::optional<NoAnswers> ParseNoAnswers(absl::string_view bytes) {
  if (bytes.empty() || bytes[0] != kNone || bytes.size() > 2 * kMaxLinePathBytes) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> texts =
      absl::StrSplit(bytes.substr(1), absl::MaxSplits('\n', 1));
  return NoAnswers{Clean(texts.first), Clean(texts.second)};
}

}  // namespace clrsampler
