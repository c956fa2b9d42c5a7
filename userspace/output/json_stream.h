// JSON text in pieces, for the outputs with a number for each sample: of these a tree of values would take 16 bytes and
// more each. The caller writes the punctuation of objects; texts are escaped here.
#ifndef CLRSAMPLER_OUTPUT_JSON_STREAM_H_
#define CLRSAMPLER_OUTPUT_JSON_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "output/profile_writer.h"
#include "output/text_chunk.h"

namespace clrsampler {

// The first error of the sink ends the writing; Finish gives it.
class JsonStream {
 public:
  explicit JsonStream(const OutputSink& sink) : sink_(sink) {}

  JsonStream& Raw(absl::string_view text) {
    chunk_.append(text.data(), text.size());
    FlushIfFull();
    return *this;
  }
  JsonStream& Number(uint64_t value) {
    absl::StrAppend(&chunk_, value);
    FlushIfFull();
    return *this;
  }
  // Bytes that are no UTF-8 become U+FFFD.
  JsonStream& String(absl::string_view text) { return Value(nlohmann::ordered_json(std::string(text))); }
  JsonStream& Value(const nlohmann::ordered_json& value) {
    return Raw(value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  // `element(i)` writes one.
  template <typename Element>
  JsonStream& Array(size_t size, Element&& element) {
    chunk_.push_back('[');
    for (size_t i = 0; i < size && status_.ok(); ++i) {
      if (i > 0) chunk_.push_back(',');
      element(i);
    }
    return Raw("]");
  }

  absl::Status Finish() {
    if (!chunk_.empty()) Flush();
    return status_;
  }

 private:
  void FlushIfFull() {
    if (chunk_.size() >= kChunkBytes) Flush();
  }
  void Flush() {
    if (status_.ok()) status_ = sink_(chunk_);
    chunk_.clear();
  }

  const OutputSink& sink_;
  std::string chunk_;
  absl::Status status_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_JSON_STREAM_H_
