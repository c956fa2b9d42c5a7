#include "store/segment_dictionary.h"

#include <array>

#include "store/varint.h"

namespace clrsampler {
namespace {

// The texts of a frame, in the order of the file.
constexpr std::array kFrameTexts = {&ModelFrame::name,   &ModelFrame::system_name, &ModelFrame::source,
                                    &ModelFrame::module, &ModelFrame::module_path, &ModelFrame::build_id,
                                    &ModelFrame::tier,   &ModelFrame::source_file};
constexpr std::array kProcessTexts = {&SegmentProcess::comm, &SegmentProcess::runtime, &SegmentProcess::container,
                                      &SegmentProcess::container_id, &SegmentProcess::pod_uid};
constexpr std::array kSizes = {&DictionarySizes::strings, &DictionarySizes::frames, &DictionarySizes::nodes,
                               &DictionarySizes::processes, &DictionarySizes::threads};

// A frame begins with its kind, to which these are added. With a line it has its line, column and kind of line behind
// the rest. With the hash of its file it ends in that.
constexpr uint64_t kWithLine = 10;
constexpr uint64_t kWithFileHash = 2 * kWithLine;
static_assert(kModelFrameKindCount <= kWithLine,
              "another kind needs another form of frames, beside the one of old files");

void WriteFrame(const ModelFrame& frame, VarintWriter& out) {
  const bool line = frame.line != 0, file_hash = frame.file_hash != 0;
  out.Number(static_cast<uint64_t>(frame.kind) + (line ? kWithLine : 0) + (file_hash ? kWithFileHash : 0));
  for (const auto text : kFrameTexts) out.Number(frame.*text);
  out.Number(frame.address);
  out.Number(frame.size);
  if (line) {
    out.Number(frame.line);
    out.Number(frame.column);
    out.Number(static_cast<uint64_t>(frame.line_kind));
  }
  if (file_hash) out.Number(frame.file_hash);
}

ModelFrame ReadFrame(size_t strings, VarintReader& in) {
  ModelFrame frame;
  const uint64_t kind = in.Below(2 * kWithFileHash);
  frame.kind = static_cast<ModelFrameKind>(kind % kWithLine);
  for (const auto text : kFrameTexts) frame.*text = static_cast<StringIndex>(in.Below(strings));
  frame.address = in.Number();
  frame.size = in.Number32();
  if (kind % kWithFileHash >= kWithLine) {
    frame.line = in.Number32();
    frame.column = in.Number32();
    frame.line_kind = static_cast<LineKind>(in.Below(kLineKindCount));
  }
  if (kind >= kWithFileHash) frame.file_hash = static_cast<StringIndex>(in.Below(strings));
  return frame;
}

}  // namespace

std::string EncodeAddition(const DictionarySizes& begin, const ProfileModel& names,
                           std::span<const SegmentProcess> processes, std::span<const SegmentThread> threads) {
  const DictionarySizes end = {.strings = names.strings.size(),
                               .frames = names.frames.size(),
                               .nodes = names.nodes.size(),
                               .processes = processes.size(),
                               .threads = threads.size(),
                               .sources = names.sources.size()};
  VarintWriter out;
  for (const auto size : kSizes) {
    out.Number(begin.*size);
    out.Number(end.*size - begin.*size);
  }
  for (size_t i = begin.strings; i < end.strings; ++i) out.Text(names.strings[static_cast<StringIndex>(i)]);
  for (size_t i = begin.frames; i < end.frames; ++i) WriteFrame(names.frames[i], out);
  // Most nodes lie right behind their parent.
  for (size_t i = begin.nodes; i < end.nodes; ++i) {
    out.Number(i - names.nodes[i].parent - 1);
    out.Number(names.nodes[i].frame);
  }
  for (const SegmentProcess& process : processes.subspan(begin.processes)) {
    out.Number(process.pid);
    out.Number(process.started_boot_ns);
    for (const auto text : kProcessTexts) out.Number(process.*text);
    out.Number(process.uid ? uint64_t{*process.uid} + 1 : 0);
  }
  for (const SegmentThread& thread : threads.subspan(begin.threads)) {
    out.Number(thread.process);
    out.Number(thread.tid);
    out.Number(thread.name);
  }
  // These stand behind the rest, and only where there are some: most segments have none.
  for (size_t i = begin.sources; i < end.sources; ++i) {
    out.Number(names.sources[i].file);
    out.Number(names.sources[i].url);
  }
  return std::move(out).Take();
}

absl::Status SegmentDictionary::Extend(std::span<const std::byte> addition) {
  const size_t text_bytes = text_.size();
  if (ReadAddition(addition)) {
    sizes_ = {text_ends_.size(), frames_.size(), nodes_.size(), processes_.size(), threads_.size(), sources_.size()};
    return absl::OkStatus();
  }
  text_.resize(text_bytes);
  text_ends_.resize(sizes_.strings);
  frames_.resize(sizes_.frames);
  nodes_.resize(sizes_.nodes);
  depths_.resize(sizes_.nodes);
  processes_.resize(sizes_.processes);
  threads_.resize(sizes_.threads);
  sources_.resize(sizes_.sources);
  return absl::DataLossError("an addition to a dictionary that does not fit to those before it");
}

bool SegmentDictionary::ReadAddition(std::span<const std::byte> addition) {
  VarintReader in(addition);
  DictionarySizes added;
  for (const auto size : kSizes) {
    if (in.Number() != sizes_.*size) return false;
    added.*size = in.Count(1);
    if (added.*size > kMaxDictionarySizes.*size - sizes_.*size) return false;
  }
  for (size_t i = 0; i < added.strings; ++i) {
    const absl::string_view text = in.Text(kMaxModelStringBytes);
    if (!in.ok() || text.size() > kMaxDictionaryTextBytes - text_.size()) return false;
    text_.append(text.data(), text.size());
    text_ends_.push_back(static_cast<uint32_t>(text_.size()));
  }
  const size_t strings = text_ends_.size();
  for (size_t i = 0; i < added.frames && in.ok(); ++i) frames_.push_back(ReadFrame(strings, in));
  for (size_t i = 0; i < added.nodes && in.ok(); ++i) {
    const uint64_t before = in.Below(nodes_.size());
    const auto parent = static_cast<NodeIndex>(nodes_.size() - 1 - before);
    const auto frame = static_cast<FrameIndex>(in.Below(frames_.size()));
    if (!in.ok() || depths_[parent] >= kMaxModelStackFrames) return false;
    nodes_.push_back({parent, frame});
    depths_.push_back(static_cast<uint16_t>(depths_[parent] + 1));
  }
  for (size_t i = 0; i < added.processes && in.ok(); ++i) {
    SegmentProcess& process = processes_.emplace_back();
    process.pid = in.Number32();
    process.started_boot_ns = in.Number();
    for (const auto text : kProcessTexts) process.*text = static_cast<StringIndex>(in.Below(strings));
    const uint64_t uid = in.Below((uint64_t{1} << 32) + 1);
    if (uid > 0) process.uid = static_cast<uint32_t>(uid - 1);
  }
  for (size_t i = 0; i < added.threads && in.ok(); ++i) {
    SegmentThread& thread = threads_.emplace_back();
    thread.process = static_cast<uint32_t>(in.Below(processes_.size()));
    thread.tid = in.Number32();
    thread.name = static_cast<StringIndex>(in.Below(strings));
  }
  while (in.ok() && !in.AtEnd()) {
    if (sources_.size() >= kMaxDictionarySizes.sources) return false;
    SegmentSource& source = sources_.emplace_back();
    source.file = static_cast<StringIndex>(in.Below(strings));
    source.url = static_cast<StringIndex>(in.Below(strings));
  }
  return in.ok() && in.AtEnd();
}

}  // namespace clrsampler
