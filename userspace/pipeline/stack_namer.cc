#include "pipeline/stack_namer.h"

#include <algorithm>

namespace clrsampler {
namespace {

constexpr absl::string_view kDeeper = "[deeper than the limit of frames]";

}  // namespace

FrameId StackNamer::Mark(absl::string_view text) {
  return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, std::string(text), "", ""});
}

const NamedStack& StackNamer::Name(const Process& process, const RawStack& raw, const UserStack& user,
                                   MonotonicTime time) {
  key_.exec_count = process.exec_count;
  key_.addresses.assign(raw.kernel_addresses().begin(), raw.kernel_addresses().end());
  key_.addresses.push_back(0);
  // What is said about the stack is a part of it; addresses have at most 48 bits.
  constexpr int kDoubtShift = 56;
  for (const UserFrame& frame : user.frames) {
    key_.addresses.push_back(frame.address | static_cast<uint64_t>(frame.doubt) << kDoubtShift);
  }
  key_.addresses.push_back(static_cast<uint64_t>(user.end));

  const uint64_t generation = resolver_.Generation(process);
  auto* of_process = &cache_[process.key];
  const auto found = of_process->find(key_);
  if (found != of_process->end()) {
    NamedStack& cached = found->second;
    if (cached.generation == generation && cached.from <= time && time < cached.until) {
      ++counters_.hits;
      return cached;
    }
    ++counters_.misses;
    Resolve(process, raw, user, time, cached);
    cached.generation = generation;
    return cached;
  }
  ++counters_.misses;
  if (cached_ >= kMaxCached) {
    cache_.clear();
    cached_ = 0;
    ++counters_.flushes;
    of_process = &cache_[process.key];
  }
  NamedStack& fresh = (*of_process)[key_];
  ++cached_;
  Resolve(process, raw, user, time, fresh);
  fresh.generation = generation;
  return fresh;
}

void StackNamer::Resolve(const Process& process, const RawStack& raw, const UserStack& user, MonotonicTime time,
                         NamedStack& out) {
  out = NamedStack{};
  out.frames.reserve(user.frames.size() + raw.kernel_addresses().size());
  if (user.end == StackEnd::kTruncated) out.frames.push_back(Mark(kDeeper));
  for (auto frame = user.frames.rbegin(); frame != user.frames.rend(); ++frame) {
    if (frame->doubt != FrameDoubt::kNone) out.frames.push_back(Mark(MarkText(frame->doubt)));
    const Mapping* mapping = process.mappings.Find(frame->lookup_address);
    const Resolution resolution =
        resolver_.Resolve(FrameQuery{process, mapping, frame->address, frame->lookup_address, time});
    out.frames.push_back(resolution.frame);
    out.from = std::max(out.from, resolution.from);
    out.until = std::min(out.until, resolution.until);
  }
  out.until = std::min(out.until, kernel_.Append(raw.kernel_addresses(), time, out.frames));
  for (const FrameId id : out.frames) out.sources |= 1u << static_cast<unsigned>(frames_.at(id).source);
}

void StackNamer::Forget(ProcessKey key) {
  const auto found = cache_.find(key);
  if (found == cache_.end()) return;
  cached_ -= found->second.size();
  cache_.erase(found);
}

}  // namespace clrsampler
