// Tells which method stood at an address at a time, by the notes of the sampler and by what was seen before and later.
#include <algorithm>
#include <cstring>
#include <utility>

#include "clr/memory/memory_methods.h"
#include "clr/memory/memory_process_state.h"
#include "clr/memory/snapshot_name.h"

namespace clrsampler {
namespace {

// 2 MB a process. Samples wait for a second or two, and have two or three of these on average.
constexpr size_t kMaxMoments = 1 << 14;

}  // namespace

// The sampler saw this at the moment of the sample. If it has a name, that needs no second look. Else the method must
// still be there.
void MemoryMethods::AddSnapshot(ProcessState& state, const wire_code_snapshot& snapshot, MonotonicTime time) {
  ++counters_.snapshots;
  Moment moment{
      .start = snapshot.start, .header = snapshot.header, .name = NameOf(snapshot), .cut = IsNameCut(snapshot)};
  std::memcpy(moment.identity.data(), snapshot.identity, moment.identity.size());
  // The range of the body. Funclets behind it are covered where samples hit them.
  const auto begin = FieldOf<uint32_t>(moment.identity, state.runtime->layout().code_header.unwinds);
  const auto end = FieldOf<uint32_t>(moment.identity, state.runtime->layout().code_header.unwinds + 4);
  constexpr uint32_t kMaxBody = 1 << 20;
  const uint64_t body = end > begin && end - begin < kMaxBody ? end - begin : 0;
  moment.end = std::max<uint64_t>(snapshot.start + body, snapshot.address + 1);
  for (; state.moment_count >= kMaxMoments; state.moments.erase(state.moments.begin())) {
    state.moment_count -= state.moments.begin()->second.size();
  }
  ++state.moment_count;
  const Moment& noted = state.moments[time].emplace_back(std::move(moment));
  // Without a name of its own a snapshot proves nothing: the method that is read now may be the next one of the same
  // shape. So two readings have to agree, or its heap must have had one owner for long enough (HeapOwners).
  const bool named = !noted.name.empty();
  if (named && Extend(state, noted, snapshot.address, time)) return;
  const auto is_same = [&](const Known& known) { return noted.IsOf(known) && (!named || noted.HasNameOf(known)); };
  if (CutAt(state.known, noted.start, noted.end, time, is_same)) ++state.generation;
  if (!named) {
    ++counters_.snapshots_gone;
    return;
  }
  Known known;
  known.transient = true;
  known.from = known.until = time;
  known.code.header = noted.header;
  known.code.identity = noted.identity;
  known.start = known.code.range.begin = noted.start;
  known.end = known.code.range.end = noted.end;
  known.name = noted.name;
  known.frame = FrameOf(state, DynamicMethodNamed(noted.name));
  ++counters_.transient;
  std::vector<Known>& there = state.known[known.start];
  if (there.size() >= kMaxHistory) DropOldest(state, there, 1);
  there.push_back(std::move(known));
  ++state.methods;
}

// False: the method that the sampler noted was not seen before.
bool MemoryMethods::Extend(ProcessState& state, const Moment& noted, uint64_t address, MonotonicTime time) {
  const auto there = state.known.find(noted.start);
  if (there == state.known.end()) return false;
  for (Known& known : there->second) {
    if (known.ended || !noted.IsOf(known) || !noted.HasNameOf(known)) continue;
    if (!ReachesTo(state.known, noted.start, known, time)) continue;
    known.from = std::min(known.from, time);
    known.until = std::max(known.until, time);
    known.end = std::max(known.end, address + 1);
    if (frames_.IsRefusal(known.frame)) known.frame = FrameOf(state, DynamicMethodNamed(known.name));
    return true;
  }
  return false;
}

const MemoryMethods::Moment* MemoryMethods::MomentAt(const ProcessState& state, uint64_t address, MonotonicTime time) {
  const auto at = state.moments.find(time);
  if (at == state.moments.end()) return nullptr;
  const auto moment =
      std::ranges::find_if(at->second, [&](const Moment& one) { return one.start <= address && address < one.end; });
  return moment == at->second.end() ? nullptr : &*moment;
}

// The method that the sampler noted. One without a name must have been seen before and later.
const MemoryMethods::Known* MemoryMethods::KnownOf(const ProcessState& state, const Moment& moment,
                                                   MonotonicTime time) {
  const auto there = state.known.find(moment.start);
  if (there == state.known.end()) return nullptr;
  const auto is_it = [&](const Known& known) {
    if (!moment.IsOf(known)) return false;
    const bool then = known.from <= time && time <= known.until;
    return moment.name.empty() ? then : known.name == moment.name || (then && moment.HasNameOf(known));
  };
  const auto found = std::find_if(there->second.rbegin(), there->second.rend(), is_it);
  return found == there->second.rend() ? nullptr : &*found;
}

const MemoryMethods::Known* MemoryMethods::FindKnown(ProcessState& state, uint64_t address, MonotonicTime time,
                                                     bool at_entry) const {
  if (const Moment* const moment = MomentAt(state, address, time)) return KnownOf(state, *moment, time);
  const Known* found = nullptr;
  ForEachAround(state.known, address, [&](const Known& known) {
    if (known.from > time || time > known.until || (at_entry && known.stub)) return false;
    found = &known;
    return true;
  });
  return found;
}

// A method was compiled to this place. Dynamic ones are freed one by one, so those that were seen there before have
// gone: what is seen from now on is another one, whatever it is called.
void MemoryMethods::NoteEnds(ProcessState& state, uint64_t entry, MonotonicTime time) {
  ForEachAround(state.known, entry, [&](Known& known) {
    if (known.transient && !known.name.empty() && known.from < time) known.ended = true;
    return false;
  });
}

}  // namespace clrsampler
