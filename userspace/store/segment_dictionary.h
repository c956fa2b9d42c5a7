// The things that the entries of a segment refer to by number: texts, frames, nodes of stacks, processes, threads.
// Files of source text are there too.
//
// A segment is a run of entries that share one dictionary. It only grows, by one addition for each window, and is
// forgotten as a whole with the last of its entries: no entry ever has to be counted or collected. Additions are read
// back in their order; each says where it begins, so one that is missing is noticed.
//
// SegmentDictionary reads: additions of a file that may be damaged, in bounds whatever they say. SegmentBuilder
// (segment_builder.h) writes.
#ifndef CLRSAMPLER_STORE_SEGMENT_DICTIONARY_H_
#define CLRSAMPLER_STORE_SEGMENT_DICTIONARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// Texts are indexes of strings.
struct SegmentProcess {
  uint32_t pid = 0;
  uint64_t started_boot_ns = 0;
  StringIndex comm = 0;
  StringIndex runtime = 0;
  StringIndex container = 0;  // WindowProcess::container
  StringIndex container_id = 0;
  StringIndex pod_uid = 0;
  std::optional<uint32_t> uid;

  friend bool operator==(const SegmentProcess&, const SegmentProcess&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SegmentProcess& p) {
    return H::combine(std::move(h), p.pid, p.started_boot_ns, p.comm, p.runtime, p.container, p.container_id, p.pod_uid,
                      p.uid);
  }
};

struct SegmentThread {
  uint32_t process = 0;  // index of processes
  uint32_t tid = 0;
  StringIndex name = 0;

  friend bool operator==(const SegmentThread&, const SegmentThread&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SegmentThread& t) {
    return H::combine(std::move(h), t.process, t.tid, t.name);
  }
};

// Where the text of a file that frames name can be had.
struct SegmentSource {
  StringIndex file = 0;
  StringIndex url = 0;
};

// Entries of each kind; the first string is "" and the first node the root, in no addition.
struct DictionarySizes {
  size_t strings = 1;
  size_t frames = 0;
  size_t nodes = 1;
  size_t processes = 0;
  size_t threads = 0;
  size_t sources = 0;

  friend bool operator==(const DictionarySizes&, const DictionarySizes&) = default;
};

// Far more than a SegmentBuilder lets a segment have; what is beyond is damaged.
inline constexpr DictionarySizes kMaxDictionarySizes = {.strings = 1 << 22,
                                                        .frames = 1 << 21,
                                                        .nodes = 1 << 23,
                                                        .processes = 1 << 20,
                                                        .threads = 1 << 21,
                                                        .sources = 1 << 20};
inline constexpr size_t kMaxDictionaryTextBytes = size_t{128} << 20;

// All entries from `begin` on. Only strings, frames, nodes and sources of `names` count, and no source's text.
std::string EncodeAddition(const DictionarySizes& begin, const ProfileModel& names,
                           std::span<const SegmentProcess> processes, std::span<const SegmentThread> threads);

class SegmentDictionary {
 public:
  // DATA_LOSS: not the next addition; the dictionary stays as it was.
  absl::Status Extend(std::span<const std::byte> addition);

  const DictionarySizes& sizes() const { return sizes_; }
  // Indexes are less than sizes() has.
  absl::string_view text(StringIndex index) const {
    const size_t begin = index == 0 ? 0 : text_ends_[index - 1];
    return absl::string_view(text_).substr(begin, text_ends_[index] - begin);
  }
  const ModelFrame& frame(FrameIndex index) const { return frames_[index]; }
  const StackNode& node(NodeIndex index) const { return nodes_[index]; }  // its parent is less
  std::span<const ModelFrame> frames() const { return frames_; }
  std::span<const StackNode> nodes() const { return nodes_; }
  const SegmentProcess& process(uint32_t index) const { return processes_[index]; }
  const SegmentThread& thread(uint32_t index) const { return threads_[index]; }
  const SegmentSource& source(size_t index) const { return sources_[index]; }

 private:
  bool ReadAddition(std::span<const std::byte> addition);

  DictionarySizes sizes_;
  std::string text_;
  std::vector<uint32_t> text_ends_ = {0};
  std::vector<ModelFrame> frames_;
  std::vector<StackNode> nodes_ = {{}};
  std::vector<uint16_t> depths_ = {0};  // of each node: a model's stacks have at most kMaxModelStackFrames
  std::vector<SegmentProcess> processes_;
  std::vector<SegmentThread> threads_;
  std::vector<SegmentSource> sources_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_SEGMENT_DICTIONARY_H_
