#include "symbols/frame.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace clrsampler {

absl::string_view NameSourceText(NameSource source) {
  switch (source) {
    case NameSource::kNone:
      return "none";
    case NameSource::kKallsyms:
      return "kallsyms";
    case NameSource::kElfSymbols:
      return "elf";
    case NameSource::kFunctionStart:
      return "eh_frame";
    case NameSource::kJitdump:
      return "jitdump";
    case NameSource::kPerfMap:
      return "perf-map";
    case NameSource::kR2rMap:
      return "r2rmap";
    case NameSource::kR2rImage:
      return "r2r-image";
    case NameSource::kRuntimeMemory:
      return "memory";
    case NameSource::kRuntimeTable:
      return "runtime-table";
    case NameSource::kRuntimeEvent:
      return "runtime-event";
  }
  return "none";
}

namespace {

// Cuts a text that a program chose. Its memory goes, too.
void Shorten(std::string& text) {
  constexpr absl::string_view kEllipsis = "\u2026";
  if (text.size() <= FrameTable::kMaxTextBytes) return;
  size_t end = FrameTable::kMaxTextBytes - kEllipsis.size();
  for (int back = 0; back < 3 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80; ++back) --end;  // inside a character
  text = absl::StrCat(absl::string_view(text).substr(0, end), kEllipsis);
}

// The memory of a frame, with its place in the table.
size_t BytesOf(const Frame& frame) {
  constexpr size_t kPlaceBytes = 64;
  return sizeof(Frame) + kPlaceBytes + frame.text.capacity() + frame.module.capacity() + frame.tier.capacity() +
         frame.symbol.capacity() + frame.place.file.capacity();
}

}  // namespace

FrameId FrameTable::Intern(Frame frame) {
  main_loop_.Check();
  for (std::string* text : {&frame.text, &frame.module, &frame.tier, &frame.place.file}) Shorten(*text);
  // A part of it would be another function's name to a linker.
  if (frame.symbol.size() > kMaxTextBytes) frame.symbol = std::string();
  const auto found = ids_.find(&frame);
  if (found != ids_.end()) return found->second;
  if (!HasRoom()) {
    room_->refused = true;
    return Refuse(frame.kind);
  }
  const FrameId id = static_cast<FrameId>(frames_.size());
  for (std::string* text : {&frame.text, &frame.symbol}) text->shrink_to_fit();
  const size_t bytes = BytesOf(frame);
  bytes_ += bytes;
  if (room_ != nullptr) {
    room_->used += bytes;
    room_->left -= std::min(room_->left, bytes);
  }
  frames_.push_back(std::make_unique<const Frame>(std::move(frame)));
  ids_.emplace(frames_.back().get(), id);
  return id;
}

FrameId FrameTable::InternOwn(Frame frame) {
  FrameRoom* const room = SetRoom(nullptr);
  const FrameId id = Intern(std::move(frame));
  SetRoom(room);
  return id;
}

FrameRoom* FrameTable::SetRoom(FrameRoom* room) {
  main_loop_.Check();
  return std::exchange(room_, room);
}

FrameId FrameTable::Refuse(FrameKind kind) {
  std::optional<FrameId>& refusal = refusals_[static_cast<size_t>(kind)];
  if (!refusal) {
    const bool is_type = kind == FrameKind::kType;
    refusal = InternOwn(Frame{
        kind, NameSource::kNone,
        is_type ? "[type of a program with too many names]" : "[function of a program with too many names]", "", ""});
  }
  return *refusal;
}

}  // namespace clrsampler
