#include "output/folded.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/names/folded_text.h"
#include "status/status.h"

namespace clrsampler {
namespace {

FrameSuffix SuffixOf(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kKernel:
      return FrameSuffix::kKernel;
    case FrameKind::kNative:
      return FrameSuffix::kNone;
    case FrameKind::kJit:
    case FrameKind::kR2r:
    case FrameKind::kAot:
      return FrameSuffix::kManaged;
    case FrameKind::kMark:
    case FrameKind::kRole:
      return FrameSuffix::kNone;
  }
  return FrameSuffix::kNone;
}

// Flushed at this size; a write call for each line would cost more than making it.
constexpr size_t kChunkBytes = 256 * 1024;

struct Line {
  size_t begin;
  size_t length;
  uint64_t count;
};

}  // namespace

absl::Status FoldedWriter::Write(const Profile& profile, const OutputSink& sink) const {
  std::vector<std::string> frame_texts(profile.frames.size());
  for (FrameId id = 0; id < frame_texts.size(); ++id) {
    const Frame& frame = profile.frames.at(id);
    frame_texts[id] =
        options_.annotate_source && frame.named()
            ? FoldedFrame(absl::StrCat(frame.text, " [", NameSourceText(frame.source), "]"), SuffixOf(frame))
            : FoldedFrame(frame.text, SuffixOf(frame));
  }

  std::string text;  // all lines without their counts, one behind the other
  std::vector<Line> lines;
  lines.reserve(profile.stacks.size());
  std::vector<std::string> labels;
  for (StackId id = 0; id < profile.stacks.size(); ++id) {
    const uint64_t count = profile.stacks.count(id);
    if (count == 0) continue;
    const StackView stack = profile.stacks.stack(id);
    while (labels.size() <= stack.label) {
      labels.push_back(FoldedComm(profile.stacks.label(static_cast<LabelId>(labels.size()))));
    }
    const size_t begin = text.size();
    text += labels[stack.label];
    for (const FrameId frame : stack.frames) {
      text += ';';
      text += frame_texts[frame];
    }
    lines.push_back({begin, text.size() - begin, count});
  }

  const auto view = [&](const Line& line) { return absl::string_view(text).substr(line.begin, line.length); };
  std::sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) { return view(a) < view(b); });

  std::string chunk;
  for (size_t i = 0; i < lines.size();) {
    uint64_t count = 0;
    const absl::string_view line = view(lines[i]);
    for (; i < lines.size() && view(lines[i]) == line; ++i) count += lines[i].count;
    absl::StrAppend(&chunk, line, " ", count, "\n");
    if (chunk.size() >= kChunkBytes) {
      RETURN_IF_ERROR(sink(chunk));
      chunk.clear();
    }
  }
  return chunk.empty() ? absl::OkStatus() : sink(chunk);
}

}  // namespace clrsampler
