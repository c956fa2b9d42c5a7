// Streams of the form "nettrace" made by hand: the good ones, and those that are damaged in a way that a reader sees.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_NETTRACE_NETTRACE_WRITER_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_NETTRACE_NETTRACE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

template <typename T>
std::string Little(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// With the 0 behind it. ASCII only.
inline std::string Utf16Text(absl::string_view text) {
  std::string out;
  for (const char c : text) out.append({c, '\0'});
  return out + std::string(2, '\0');
}

inline std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(0x80 | (value & 0x7F)));
  out.push_back(static_cast<char>(value));
  return out;
}

// A row with all its fields; the time and the sequence number are what they grow by.
struct WrittenRow {
  uint32_t metadata_id = 1;
  uint32_t sequence_growth = 0;
  uint64_t thread = 7;
  uint32_t stack_id = 0;
  uint64_t ticks_growth = 0;
  bool sorted = false;
  std::string payload;

  std::string Bytes() const {
    const auto flags = static_cast<char>(1 | 2 | 4 | 8 | 128 | (sorted ? 64 : 0));
    return absl::StrCat(std::string(1, flags), Varint(metadata_id), Varint(sequence_growth), Varint(thread), Varint(0),
                        Varint(thread), Varint(stack_id), Varint(ticks_growth), Varint(payload.size()), payload);
  }
};

// A description of event number `event_id`; `payload` follows none of the fields that a runtime would describe.
inline std::string Description(uint32_t id, uint32_t event_id, absl::string_view provider = "P") {
  const std::string payload = absl::StrCat(Little(id), Utf16Text(provider), Little(event_id), Utf16Text("N"),
                                           Little(uint64_t{1}), Little(uint32_t{2}), Little(uint32_t{5}));
  // Neither number nor thread: flags say metadata id and size only.
  return absl::StrCat(std::string(1, '\x81'), Varint(0), Varint(0), Varint(payload.size()), payload);
}

class NettraceWriter {
 public:
  explicit NettraceWriter(bool start = true, uint32_t pointer_bytes = 8) {
    bytes_ = absl::StrCat("Nettrace", Little(uint32_t{20}), "!FastSerialization.1");
    if (start) Start(1'000'000'000, pointer_bytes);
  }

  NettraceWriter& Start(uint64_t ticks_per_second, uint32_t pointer_bytes) {
    std::string content;
    for (const uint16_t field : {2026, 1, 4, 1, 0, 0, 1, 500}) content += Little(field);
    absl::StrAppend(&content, Little(uint64_t{123}), Little(ticks_per_second), Little(pointer_bytes),
                    Little(uint32_t{42}), Little(uint32_t{2}), Little(uint32_t{0}));
    absl::StrAppend(&bytes_, Type("Trace", 4), content, "\6");
    return *this;
  }
  NettraceWriter& Block(absl::string_view kind, absl::string_view content, uint32_t version = 2) {
    absl::StrAppend(&bytes_, Type(kind, version), Little(static_cast<uint32_t>(content.size())));
    while (bytes_.size() % 4 != 0) bytes_.push_back('\0');
    absl::StrAppend(&bytes_, content, "\6");
    return *this;
  }
  NettraceWriter& Rows(absl::string_view kind, absl::string_view rows, uint16_t flags = 1) {
    return Block(kind, absl::StrCat(Little(uint16_t{20}), Little(flags), std::string(16, '\0'), rows));
  }
  NettraceWriter& Describe(uint32_t id, uint32_t event_id) { return Rows("MetadataBlock", Description(id, event_id)); }
  NettraceWriter& Events(const std::vector<WrittenRow>& rows) {
    std::string all;
    for (const WrittenRow& row : rows) all += row.Bytes();
    return Rows("EventBlock", all);
  }
  NettraceWriter& Stacks(uint32_t first, const std::vector<std::vector<uint64_t>>& stacks) {
    std::string content = Little(first) + Little(static_cast<uint32_t>(stacks.size()));
    for (const std::vector<uint64_t>& stack : stacks) {
      content += Little(static_cast<uint32_t>(8 * stack.size()));
      for (const uint64_t address : stack) content += Little(address);
    }
    return Block("StackBlock", content);
  }
  NettraceWriter& SequencePoint(uint64_t ticks, const std::vector<std::pair<uint64_t, uint32_t>>& threads) {
    std::string content = Little(ticks) + Little(static_cast<uint32_t>(threads.size()));
    for (const auto& [thread, sequence] : threads) content += Little(thread) + Little(sequence);
    return Block("SPBlock", content);
  }
  NettraceWriter& Raw(absl::string_view bytes) {
    absl::StrAppend(&bytes_, bytes);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }
  std::string Ended() const { return bytes_ + "\1"; }

 private:
  static std::string Type(absl::string_view name, uint32_t version) {
    return absl::StrCat("\5\5\1", Little(version), Little(version), Little(static_cast<uint32_t>(name.size())), name,
                        "\6");
  }

  std::string bytes_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_NETTRACE_NETTRACE_WRITER_H_
