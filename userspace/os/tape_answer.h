// Typed answers through a Tape.
//
//   Taped(tape, [&] { return ReadWholeFile(path, kMaxBytes); }, "file ", path)
//
// Without a tape (nullptr) the question's text is not even made. A recorded answer that is missing or damaged becomes
// the type's word for "could not be had": DATA_LOSS, nullopt, false, zero.
#ifndef CLRSAMPLER_OS_TAPE_ANSWER_H_
#define CLRSAMPLER_OS_TAPE_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "os/tape.h"
#include "status/status.h"

namespace clrsampler {

// Writes values one behind the other; little-endian as both architectures are.
class TapeWriter {
 public:
  template <typename T>
  void Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void PutText(absl::string_view text) {
    Put(uint64_t{text.size()});
    bytes_.append(text.data(), text.size());
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads them back. After the first value that is not there, all are zero and ok() is false.
class TapeReader {
 public:
  explicit TapeReader(absl::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T Get() {
    T value{};
    if (bytes_.size() < sizeof value) {
      ok_ = false;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  absl::string_view GetText() {
    const auto size = Get<uint64_t>();
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const absl::string_view text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return text;
  }
  size_t left() const { return bytes_.size(); }
  // How many values of at least `bytes_each` follow; more than there is room for counts as damage.
  size_t GetCount(size_t bytes_each) {
    const auto count = Get<uint64_t>();
    if (count <= bytes_.size() / bytes_each) return count;
    ok_ = false;
    bytes_ = {};
    return 0;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

// How a type is written. Others are specialised beside their types.
template <typename T>
struct TapeCodec {
  static void Write(const T& value, TapeWriter& out) { out.Put(value); }
  static T Read(TapeReader& in) { return in.Get<T>(); }
};

template <>
struct TapeCodec<bool> {
  static void Write(bool value, TapeWriter& out) { out.Put(uint8_t{value}); }
  static bool Read(TapeReader& in) { return in.Get<uint8_t>() == 1; }
};

template <>
struct TapeCodec<std::string> {
  static void Write(const std::string& value, TapeWriter& out) { out.PutText(value); }
  static std::string Read(TapeReader& in) { return std::string(in.GetText()); }
};

template <typename T>
struct TapeCodec<std::vector<T>> {
  static void Write(const std::vector<T>& values, TapeWriter& out) {
    out.Put(uint64_t{values.size()});
    for (const T& value : values) TapeCodec<T>::Write(value, out);
  }
  static std::vector<T> Read(TapeReader& in) {
    std::vector<T> values;
    const size_t count = in.GetCount(1);
    for (size_t i = 0; i < count && in.ok(); ++i) values.push_back(TapeCodec<T>::Read(in));
    return values;
  }
};

template <typename T>
struct TapeCodec<std::optional<T>> {
  static void Write(const std::optional<T>& value, TapeWriter& out) {
    out.Put(uint8_t{value.has_value()});
    if (value) TapeCodec<T>::Write(*value, out);
  }
  static std::optional<T> Read(TapeReader& in) {
    if (in.Get<uint8_t>() != 1) return std::nullopt;
    T value = TapeCodec<T>::Read(in);
    if (!in.ok()) return std::nullopt;
    return value;
  }
};

template <>
struct TapeCodec<absl::Status> {
  static void Write(const absl::Status& status, TapeWriter& out) {
    out.Put(static_cast<int32_t>(status.code()));
    if (status.ok()) return;
    const std::string hint = HintOf(status);
    out.PutText(hint.empty() ? std::string(status.message()) : absl::StrCat(status.message(), kHintFollows, hint));
  }
  static absl::Status Read(TapeReader& in) {
    const auto code = static_cast<absl::StatusCode>(in.Get<int32_t>());
    if (!in.ok()) return absl::DataLossError("not on the tape");
    if (code == absl::StatusCode::kOk) return absl::OkStatus();
    const std::string text(in.GetText());
    const auto [message, hint] =
        std::pair<std::string, std::string>(absl::StrSplit(text, absl::MaxSplits(kHintFollows, 1)));
    absl::Status status(code, message);
    return hint.empty() ? status : WithHint(std::move(status), hint);
  }

 private:
  static constexpr absl::string_view kHintFollows{"\x1f", 1};  // ASCII's unit separator
};

template <typename T>
struct TapeCodec<absl::StatusOr<T>> {
  static void Write(const absl::StatusOr<T>& value, TapeWriter& out) {
    TapeCodec<absl::Status>::Write(value.status(), out);
    if (value.ok()) TapeCodec<T>::Write(*value, out);
  }
  static absl::StatusOr<T> Read(TapeReader& in) {
    absl::Status status = TapeCodec<absl::Status>::Read(in);
    if (!status.ok()) return status;
    T value = TapeCodec<T>::Read(in);
    if (!in.ok()) return absl::DataLossError("not on the tape");
    return value;
  }
};

// `question`: what StrCat takes.
template <typename Ask, typename... Question>
auto Taped(Tape* tape, Ask&& ask, const Question&... question) -> decltype(ask()) {
  using Result = decltype(ask());
  if (tape == nullptr) return ask();
  const std::string answer = tape->Answer(absl::StrCat(question...), [&] {
    TapeWriter out;
    TapeCodec<Result>::Write(ask(), out);
    return out.Take();
  });
  TapeReader in(answer);
  return TapeCodec<Result>::Read(in);
}

// For reads into memory of the caller: `ask` says whether all of `into` was filled.
template <typename Ask, typename... Question>
bool TapedRead(Tape* tape, std::span<std::byte> into, Ask&& ask, const Question&... question) {
  if (tape == nullptr) return ask();
  const std::string answer = tape->Answer(absl::StrCat(question..., " ", into.size()), [&] {
    if (!ask()) return std::string();
    return std::string(reinterpret_cast<const char*>(into.data()), into.size());
  });
  if (answer.size() != into.size()) return false;
  std::memcpy(into.data(), answer.data(), answer.size());
  return true;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_TAPE_ANSWER_H_
