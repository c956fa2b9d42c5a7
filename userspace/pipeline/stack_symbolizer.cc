#include "pipeline/stack_symbolizer.h"

#include <algorithm>
#include <iterator>

#include "formats/names/async_body.h"

namespace clrsampler {
FrameId StackSymbolizer::Mark(absl::string_view text) {
  return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, std::string(text), "", ""});
}

const NamedStack& StackSymbolizer::Name(const Process& process, const RawStack& raw, const UserStack& user,
                                        MonotonicTime time) {
  main_loop_.Check();
  key_.exec_count = process.exec_count;
  key_.addresses.assign(raw.kernel_addresses().begin(), raw.kernel_addresses().end());
  key_.addresses.push_back(0);
  // Doubts about the stack are a part of it. Addresses have at most 48 bits.
  constexpr int kDoubtShift = 56;
  for (const UserFrame& frame : user.frames) {
    key_.addresses.push_back(frame.address | static_cast<uint64_t>(frame.doubt) << kDoubtShift);
  }
  key_.addresses.push_back(static_cast<uint64_t>(user.end));

  const uint64_t generation = symbolizer_.Generation(process);
  OfProcess* of_process = &Of(process);
  const auto found = of_process->stacks.find(key_);
  if (found != of_process->stacks.end()) {
    NamedStack& cached = found->second;
    if (cached.generation == generation && cached.from <= time && time < cached.until) {
      ++counters_.hits;
      return cached;
    }
    ++counters_.misses;
    Resolve(process, raw, user, time, generation, *of_process, cached);
    return cached;
  }
  ++counters_.misses;
  if (cached_ >= kMaxCached) {
    cache_.Clear();
    cached_ = 0;
    addresses_ = 0;
    ++counters_.flushes;
    of_process = &Of(process);
  }
  NamedStack& fresh = of_process->stacks[key_];
  ++cached_;
  Resolve(process, raw, user, time, generation, *of_process, fresh);
  return fresh;
}

StackSymbolizer::OfProcess& StackSymbolizer::Of(const Process& process) {
  OfProcess& known = cache_.Of(process);
  if (std::exchange(known.exec_count, process.exec_count) != process.exec_count) {
    addresses_ -= known.addresses.size();
    known.addresses.clear();
  }
  return known;
}

void StackSymbolizer::Resolve(const Process& process, const RawStack& raw, const UserStack& user, MonotonicTime time,
                              uint64_t generation, OfProcess& of_process, NamedStack& out) {
  out = NamedStack{};
  out.generation = generation;
  out.frames.reserve(user.frames.size() + raw.kernel_addresses().size());
  if (user.end == StackEnd::kTruncated) out.frames.push_back(Mark(kDeeperThanLimit));
  for (auto frame = user.frames.rbegin(); frame != user.frames.rend(); ++frame) {
    if (frame->doubt != FrameDoubt::kNone) out.frames.push_back(Mark(MarkText(frame->doubt)));
    // A call is returning by way of a return probe, and the kernel has already forgotten its return address.
    if (std::next(frame) == user.frames.rend() && IsInTrampoline(process, frame->address)) {
      if (with_places_) out.places.push_back(static_cast<uint32_t>(out.frames.size()));
      out.frames.push_back(Mark(MarkText(FrameDoubt::kCallerMayBeMissing)));
      continue;
    }
    const Resolution resolution = ResolveAddress(process, *frame, time, generation, of_process);
    if (!out.frames.empty() && frame->doubt == FrameDoubt::kNone &&
        IsFoldedInto(frames_.at(out.frames.back()).identity, frames_.at(resolution.frame).identity)) {
      out.frames.pop_back();
    }
    if (with_places_) out.places.push_back(static_cast<uint32_t>(out.frames.size()));
    out.frames.push_back(resolution.frame);
    out.from = std::max(out.from, resolution.from);
    out.until = std::min(out.until, resolution.until);
  }
  std::reverse(out.places.begin(), out.places.end());
  out.until = std::min(out.until, kernel_.Append(raw.kernel_addresses(), time, out.frames));
  for (const FrameId id : out.frames) out.sources |= 1u << static_cast<unsigned>(frames_.at(id).source);
}

Resolution StackSymbolizer::ResolveAddress(const Process& process, const UserFrame& frame, MonotonicTime time,
                                           uint64_t generation, OfProcess& of_process) {
  if (of_process.addresses.size() >= kMaxAddresses) {
    addresses_ -= of_process.addresses.size();
    of_process.addresses = {};
  }
  if (addresses_ >= kMaxAddressesOfAll) {
    for (auto& [key, one] : cache_) one.addresses = {};
    addresses_ = 0;
  }
  const auto [entry, is_new] = of_process.addresses.try_emplace(frame.lookup_address);
  NamedAddress& known = entry->second;
  if (is_new) ++addresses_;
  if (known.generation == generation && known.answer.from <= time && time < known.answer.until) return known.answer;
  const Mapping* mapping = process.mappings.Find(frame.lookup_address);
  known.answer = symbolizer_.Resolve(FrameQuery{process, mapping, frame.address, frame.lookup_address, time});
  known.generation = generation;
  return known.answer;
}

FrameId StackSymbolizer::NameOf(const Process& process, const UserFrame& frame, MonotonicTime time) {
  main_loop_.Check();
  return ResolveAddress(process, frame, time, symbolizer_.Generation(process), Of(process)).frame;
}

}  // namespace clrsampler
