#include "store/segment_builder.h"

#include "formats/profile/frame_texts.h"

namespace clrsampler {
namespace {

// Bytes of an entry with its place in the table that finds it, half of a vector's and a table's growth included.
constexpr size_t kStringBytes = 24, kFrameBytes = 152, kNodeBytes = 28, kProcessBytes = 160, kThreadBytes = 48,
                 kSourceBytes = 84;

}  // namespace

StringIndex SegmentBuilder::String(absl::string_view text) {
  const size_t before = names_.model().strings.size();
  const StringIndex index = names_.String(text);
  if (names_.model().strings.size() > before) text_bytes_ += text.size();
  return index;
}

uint32_t SegmentBuilder::Process(const SegmentProcess& process) {
  const auto [found, added] = process_ids_.try_emplace(process, static_cast<uint32_t>(processes_.size()));
  if (added) processes_.push_back(process);
  return found->second;
}

uint32_t SegmentBuilder::Thread(const SegmentThread& thread) {
  const auto [found, added] = thread_ids_.try_emplace(thread, static_cast<uint32_t>(threads_.size()));
  if (added) threads_.push_back(thread);
  return found->second;
}

std::vector<NodeIndex> SegmentBuilder::Nodes(const ProfileModel& model) {
  std::vector<FrameIndex> frames;
  frames.reserve(model.frames.size());
  for (const ModelFrame& frame : model.frames) {
    const auto own = [&](StringIndex text) { return String(model.text(text)); };
    frames.push_back(names_.Frame(WithTexts(frame, own)));
  }
  for (const ModelSource& source : model.sources) {
    if (source.url == 0) continue;
    names_.Source(String(model.text(source.file)), String(model.text(source.url)), "");
  }
  std::vector<NodeIndex> nodes = {kRootNode};
  nodes.reserve(model.nodes.size());
  for (size_t i = 1; i < model.nodes.size(); ++i) {
    nodes.push_back(names_.Node(nodes[model.nodes[i].parent], frames[model.nodes[i].frame]));
  }
  return nodes;
}

DictionarySizes SegmentBuilder::sizes() const {
  const ProfileModel& names = names_.model();
  return {names.strings.size(), names.frames.size(), names.nodes.size(),
          processes_.size(),    threads_.size(),     names.sources.size()};
}

std::string SegmentBuilder::AdditionSince(const DictionarySizes& begin) const {
  return EncodeAddition(begin, names_.model(), processes_, threads_);
}

size_t SegmentBuilder::memory_bytes() const {
  const DictionarySizes size = sizes();
  return text_bytes_ + text_bytes_ / 2 + size.strings * kStringBytes + size.frames * kFrameBytes +
         size.nodes * kNodeBytes + size.processes * kProcessBytes + size.threads * kThreadBytes +
         size.sources * kSourceBytes;
}

}  // namespace clrsampler
