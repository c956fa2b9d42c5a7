#include "pipeline/event_stacks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "formats/names/async_body.h"
#include "formats/proc/maps_text.h"
#include "pipeline/process_events.h"
#include "pipeline/stack_symbolizer.h"
#include "process/maps_mapping.h"
#include "process/proc_root.h"

namespace clrsampler {
namespace {

// The time between two readings of the mappings is at least this, and twenty times that of a reading.
constexpr uint64_t kReadAgainNs = 100'000'000;
constexpr uint64_t kReadShare = 20;

}  // namespace

EventStacks::EventStacks(const EventStacksOptions& options)
    : files_(options.files, notices_),
      table_(kProcRoot, clock_, nullptr, options.files),
      discovery_(images_, RuntimeDiscovery::CacheBy::kFile),
      sources_(MakeSources({.frames = frames_,
                            .images = images_,
                            .runtimes = discovery_,
                            .notices = notices_,
                            .clock = clock_,
                            .names = options.names,
                            .lines = options.lines,
                            .line_helper = options.line_helper})),
      symbolizer_(sources_.borrowed(), frames_, sources_.line_sources(), &notices_),
      process_(table_.FindOrScan(options.pid, 0)),
      iteration_(clock_.Now()),
      next_read_(iteration_) {
  symbolizer_.CatchUp(process_, iteration_, iteration_);
}

std::string EventStacks::RuntimeVersion() {
  main_loop_.Check();
  const std::optional<DotNetRuntime> runtime = discovery_.Find(process_);
  return runtime.has_value() ? runtime->version.Text() : "";
}

std::span<const FrameId> EventStacks::Name(std::span<const uint64_t> addresses, MonotonicTime time) {
  main_loop_.Check();
  lookup_.clear();
  for (const uint64_t address : addresses) {
    if (address != 0) lookup_.push_back(address - 1);
  }
  const MonotonicTime now = clock_.Now();
  // Events come in batches. One reading of the new mappings is enough for many of them.
  if (time >= iteration_) iteration_ = now;
  if (std::any_of(lookup_.begin(), lookup_.end(),
                  [&](uint64_t address) { return process_.mappings.Find(address) == nullptr; })) {
    ReadNewMappings(now);
  }
  // The time is that of this look: memory that was freed since the event is not taken for what was there.
  symbolizer_.Observe(process_, {lookup_, {}, now});
  symbolizer_.CatchUp(process_, time, iteration_);
  const uint64_t generation = symbolizer_.Generation(process_);
  stack_.clear();
  if (lookup_.size() >= kMostFrames) {
    stack_.push_back(frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, std::string(kDeeperThanLimit), "", ""}));
  }
  for (auto address = lookup_.rbegin(); address != lookup_.rend(); ++address) {
    const FrameId frame = Resolve(*address, time, generation).frame;
    if (!stack_.empty() && IsFoldedInto(frames_.at(stack_.back()).identity, frames_.at(frame).identity)) {
      stack_.pop_back();
    }
    stack_.push_back(frame);
  }
  return stack_;
}

Resolution EventStacks::Resolve(uint64_t lookup_address, MonotonicTime time, uint64_t generation) {
  if (named_.size() >= kMaxNamed) named_.clear();
  NamedAddress& known = named_[lookup_address];
  if (known.generation == generation && known.answer.from <= time && time < known.answer.until) return known.answer;
  const Mapping* mapping = process_.mappings.Find(lookup_address);
  known.answer = symbolizer_.Resolve({process_, mapping, lookup_address + 1, lookup_address, time});
  known.generation = generation;
  return known.answer;
}

// Mappings that are known already stay. One that went away may have been there at the time of an event.
void EventStacks::ReadNewMappings(MonotonicTime now) {
  if (now < next_read_) return;
  const absl::StatusOr<std::string> text = process_.files.ReadProc("maps", kMaxMapsBytes);
  if (text.ok()) {
    for (const MapsLine& line : ParseMaps(*text, /*executable_only=*/true).lines) {
      Mapping mapping = MappingOf(line);
      const Mapping* known = process_.mappings.Find(mapping.start);
      if (known == nullptr || known->end < mapping.end) table_.OnMapping(process_.key.tgid, std::move(mapping), now);
    }
  }
  const MonotonicTime after = clock_.Now();
  next_read_.ns = after.ns + std::max(kReadAgainNs, kReadShare * (after.ns - now.ns));
}

}  // namespace clrsampler
