#include "symbols/frame.h"

#include <utility>

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

FrameId FrameTable::Intern(Frame frame) {
  main_loop_.Check();
  const auto found = ids_.find(&frame);
  if (found != ids_.end()) return found->second;
  const FrameId id = static_cast<FrameId>(frames_.size());
  frames_.push_back(std::make_unique<const Frame>(std::move(frame)));
  ids_.emplace(frames_.back().get(), id);
  return id;
}

}  // namespace clrsampler
