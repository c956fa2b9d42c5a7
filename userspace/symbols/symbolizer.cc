#include "symbols/symbolizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "os/path_text.h"

namespace clrsampler {
namespace {

// No source knew the address. Only the mapping tells what it may have been.
Frame Unresolved(const Mapping* mapping) {
  if (mapping == nullptr) return Frame{FrameKind::kNative, NameSource::kNone, "[native: no code mapped here]", "", ""};
  switch (mapping->kind) {
    case MappingKind::kFile:
      return Frame{FrameKind::kNative, NameSource::kNone,
                   absl::StrCat("[native: no symbols ", FileNameOf(mapping->path), "]"),
                   std::string(FileNameOf(mapping->path)), ""};
    case MappingKind::kJitMemory:
      return Frame{FrameKind::kJit, NameSource::kNone, "[jit: no source of names]", "", ""};
    case MappingKind::kVdso:
      return Frame{FrameKind::kNative, NameSource::kNone, "[vdso]", "[vdso]", ""};
    case MappingKind::kOther:
      break;
  }
  return Frame{FrameKind::kNative, NameSource::kNone, absl::StrCat("[native: ", mapping->path, "]"), "", ""};
}

// A source that is behind is asked again. A jitdump of 100 MB takes some 30 rounds of its budget. This bounds the stall
// that a target can cause by writing without end.
constexpr int kMaxRounds = 64;

}  // namespace

Symbolizer::Symbolizer(std::vector<FrameSource*> sources, FrameTable& frames, std::vector<LineSource*> lines,
                       Notices* notices)
    : sources_(std::move(sources)), lines_(std::move(lines)), frames_(frames), budget_(frames, notices) {
  for (FrameSource* source : sources_) {
    if (SampleObserver* observer = source->observer()) observers_.push_back(observer);
    if (PolledSource* polled = source->polled()) polled_.push_back(polled);
  }
}

Resolution Symbolizer::Resolve(const FrameQuery& query) {
  main_loop_.Check();
  const NameBudget::Charge charge(budget_, query.process, query.time);
  const Resolution answer = ResolveAny(query);
  // There may be room at another time.
  return frames_.IsRefusal(answer.frame) ? Resolution{answer.frame, query.time, query.time} : answer;
}

Resolution Symbolizer::ResolveAny(const FrameQuery& query) {
  Resolution answer = ResolveName(query);
  if (lines_.empty() && !found_managed_) return answer;
  const Frame& named = frames_.at(answer.frame);
  if (!named.named()) return answer;
  const bool managed = named.kind == FrameKind::kJit || named.kind == FrameKind::kR2r;
  const FrameId plain = answer.frame;
  answer.frame = WithLine(query, plain);
  // There may be room for its line at another time.
  if (answer.frame == plain && !lines_.empty() && !frames_.HasRoom()) answer.from = answer.until = query.time;
  if (found_managed_ && managed) found_managed_(query, plain, answer.frame);
  return answer;
}

FrameId Symbolizer::WithLine(const FrameQuery& query, FrameId plain) {
  for (LineSource* source : lines_) {
    if (!source->HasLinesOf(frames_.at(plain).kind)) continue;
    std::optional<SourcePlace> place = source->PlaceOf(query);
    if (!place) continue;
    Frame frame = frames_.at(plain);
    frame.place = *std::move(place);
    const FrameId with_line = frames_.Intern(std::move(frame));
    return frames_.IsRefusal(with_line) ? plain : with_line;
  }
  return plain;
}

Resolution Symbolizer::ResolveName(const FrameQuery& query) {
  const MonotonicTime code_since = query.process.code_known_since;
  if (query.time < code_since) {
    return Unknown("[native: code not known at that time]", code_since);
  }
  const MonotonicTime mapping_since = query.process.mappings.KnownSince(query.lookup_address);
  if (query.time < mapping_since) {
    return Unknown("[native: mapping replaced before it was read]", mapping_since);
  }
  std::optional<Resolution> unnamed, refused;
  for (FrameSource* source : sources_) {
    const std::optional<Resolution> found = source->Resolve(query);
    if (!found) continue;
    Resolution answer = *found;
    answer.from = std::max({answer.from, code_since, mapping_since});
    // A name holds for its own time. If an earlier source comes to know one later, its generation tells.
    if (frames_.IsRefusal(answer.frame)) {  // a later source may have a name that is known
      refused = answer;
      continue;
    }
    if (frames_.at(answer.frame).named()) {
      return refused ? Resolution{answer.frame, query.time, query.time} : answer;
    }
    if (unnamed) {
      answer.from = std::max(answer.from, unnamed->from);
      answer.until = std::min(answer.until, unnamed->until);
    }
    unnamed = answer;
  }
  if (refused) return *refused;
  if (unnamed) return *unnamed;
  return Resolution{frames_.Intern(Unresolved(query.mapping)), std::max(code_since, mapping_since),
                    MonotonicTime::Max()};
}

Resolution Symbolizer::Unknown(std::string text, MonotonicTime until) {
  return Resolution{frames_.InternOwn(Frame{FrameKind::kNative, NameSource::kNone, std::move(text), "", ""}),
                    MonotonicTime::Min(), until};
}

void Symbolizer::Observe(const Process& process, const ObservedSample& sample) {
  main_loop_.Check();
  const NameBudget::Charge charge(budget_, process, sample.time);
  for (SampleObserver* observer : observers_) observer->Observe(process, sample);
}

bool Symbolizer::CatchUp(const Process& process, MonotonicTime time, MonotonicTime now) {
  main_loop_.Check();
  CaughtUp& state = caught_up_.Of(process);
  if (state.iteration == now && state.mapping_generation == process.mappings.generation()) {
    if (state.complete_until >= time) return true;
    if (!state.complete) return false;  // it got no further, and is asked once an iteration only
  }
  MonotonicTime complete_until = MonotonicTime::Max();
  for (PolledSource* source : polled_) {
    MonotonicTime seen = MonotonicTime::Min();
    for (int round = 0; round < kMaxRounds; ++round) {
      source->Poll(process, now);
      const MonotonicTime before = std::exchange(seen, source->CompleteUntil(process.key));
      if (seen >= time || (round > 0 && seen <= before)) break;
    }
    complete_until = std::min(complete_until, seen);
  }
  state = {now, process.mappings.generation(), complete_until, complete_until >= time};
  return state.complete;
}

uint64_t Symbolizer::Generation(const Process& process) const {
  uint64_t sum = process.mappings.generation();
  for (const FrameSource* source : sources_) sum += source->Generation(process.key);
  return sum;
}

bool Symbolizer::WantsShortIterations(MonotonicTime now) const {
  return std::any_of(polled_.begin(), polled_.end(),
                     [now](const PolledSource* s) { return s->WantsShortIterations(now); });
}

bool Symbolizer::MayIdle() const {
  return std::all_of(polled_.begin(), polled_.end(), [](const PolledSource* s) { return s->MayIdle(); });
}

}  // namespace clrsampler
