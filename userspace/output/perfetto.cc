#include "output/perfetto.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/names/utf8.h"
#include "output/lane_waits.h"
#include "output/nested_slices.h"
#include "output/perfetto_fields.h"
#include "output/perfetto_interner.h"
#include "output/perfetto_tracks.h"
#include "output/thread_lanes.h"
#include "profile/lane_category.h"
#include "profile/wait_kind.h"
#include "protozero/pbf_builder.hpp"

namespace clrsampler {
namespace {

using protozero::pbf_builder;

constexpr absl::string_view kSource = "clrsampler";  // viewers name the lanes of samples by it

uint64_t TimeSum(uint64_t a, uint64_t b) { return a > kMaxTime || b > kMaxTime - a ? kMaxTime : a + b; }

struct TraceClock {
  perfetto::BuiltinClock id;
  uint64_t start_ns;  // of the recording
};

TraceClock ClockOf(const ProfileMeta& meta) {
  if (meta.start_monotonic_ns > 0) return {perfetto::BuiltinClock::kMonotonic, meta.start_monotonic_ns};
  if (meta.start_unix_ns > 0) return {perfetto::BuiltinClock::kRealtime, meta.start_unix_ns};
  return {perfetto::BuiltinClock::kTraceFile, 0};
}

// The counter that the weights of the samples belong to.
std::string PrimaryCounter(const ProfileMeta& meta) {
  using perfetto::Counter, perfetto::CounterUnit;
  std::string counter;
  pbf_builder<Counter> out(counter);
  const bool counts_cpu = meta.view == ProfileView::kCpu && meta.unit == WeightUnit::kSamples;
  out.add_string(Counter::kName, std::string(counts_cpu ? "samples" : ProfileViewText(meta.view)));
  const auto unit = [&](CounterUnit known) { out.add_enum(Counter::kUnit, static_cast<int32_t>(known)); };
  switch (meta.unit) {
    case WeightUnit::kSamples:
      unit(CounterUnit::kCount);
      break;
    case WeightUnit::kMicroseconds:
      out.add_string(Counter::kUnitText, "us");
      break;
    case WeightUnit::kNanoseconds:
      unit(CounterUnit::kNanoseconds);
      break;
    case WeightUnit::kBytes:
      unit(CounterUnit::kBytes);
      break;
  }
  return counter;
}

std::string CpuTimeCounter() {
  std::string counter;
  pbf_builder<perfetto::Counter> out(counter);
  out.add_string(perfetto::Counter::kName, "CPU time");
  out.add_enum(perfetto::Counter::kUnit, static_cast<int32_t>(perfetto::CounterUnit::kNanoseconds));
  return counter;
}

void AddClock(perfetto::BuiltinClock id, uint64_t time_ns, pbf_builder<perfetto::ClockSnapshot>& out) {
  std::string clock;
  pbf_builder<perfetto::Clock> reading(clock);
  reading.add_uint32(perfetto::Clock::kId, static_cast<uint32_t>(id));
  reading.add_uint64(perfetto::Clock::kTimestamp, std::min(time_ns, kMaxTime));
  out.add_message(perfetto::ClockSnapshot::kClocks, clock);
}

template <typename Value>
void Annotate(absl::string_view name, const Value& value, pbf_builder<perfetto::Event>& event) {
  std::string annotation;
  pbf_builder<perfetto::Annotation> out(annotation);
  out.add_string(perfetto::Annotation::kName, std::string(name));
  if constexpr (std::is_same_v<Value, uint64_t>) {
    out.add_uint64(perfetto::Annotation::kUnsigned, value);
  } else {
    out.add_string(perfetto::Annotation::kText, WellFormedUtf8(value));
  }
  event.add_message(perfetto::Event::kAnnotations, annotation);
}

absl::string_view DetailName(ModelEventKind kind) { return kind == ModelEventKind::kCompilation ? "tier" : "reason"; }

class PerfettoEncoder {
 public:
  PerfettoEncoder(const ProfileModel& model, const OutputSink& sink)
      : model_(model), clock_(ClockOf(model.meta)), lanes_(model), packets_(model, sink), tracks_(model, packets_) {
    const ProfileMeta& meta = model.meta;
    const bool counts_cpu = meta.view == ProfileView::kCpu && meta.unit == WeightUnit::kSamples && meta.period_ns > 0;
    if (counts_cpu && model.total_weight <= kMaxTotalWeight / meta.period_ns) period_ns_ = meta.period_ns;
  }

  absl::Status Encode() {
    WriteClock();
    WriteDescription();
    for (const ThreadLane& lane : lanes_.lanes()) {
      tracks_.OfThread(model_.threads[lane.thread]);
      for (const uint32_t row : lane.rows) WriteSample(row);
      WriteWaits(lane);
      WriteEvents(lane);
    }
    return packets_.Finish();
  }

 private:
  void WriteClock() {
    std::string snapshot;
    pbf_builder<perfetto::ClockSnapshot> out(snapshot);
    AddClock(clock_.id, clock_.start_ns, out);
    if (clock_.id == perfetto::BuiltinClock::kMonotonic && model_.meta.start_unix_ns > 0) {
      AddClock(perfetto::BuiltinClock::kRealtime, model_.meta.start_unix_ns, out);
    }
    out.add_enum(perfetto::ClockSnapshot::kPrimary, static_cast<int32_t>(clock_.id));
    packets_.WriteFirst([&](pbf_builder<perfetto::Packet>& packet) {
      packet.add_message(perfetto::Packet::kClockSnapshot, snapshot);
      packet.add_message(perfetto::Packet::kDefaults, Defaults());
    });
  }

  std::string Defaults() const {
    std::string samples, defaults;
    pbf_builder<perfetto::StackSampleDefaults> of_samples(samples);
    of_samples.add_string(perfetto::StackSampleDefaults::kSource, std::string(kSource));
    of_samples.add_message(perfetto::StackSampleDefaults::kPrimary, PrimaryCounter(model_.meta));
    if (period_ns_ > 0) of_samples.add_message(perfetto::StackSampleDefaults::kFollowers, CpuTimeCounter());
    pbf_builder<perfetto::Defaults> out(defaults);
    out.add_uint32(perfetto::Defaults::kClock, static_cast<uint32_t>(clock_.id));
    out.add_message(perfetto::Defaults::kStackSample, samples);
    return defaults;
  }

  // The description that the viewer shows of the trace as a whole.
  void WriteDescription() {
    std::string attributes;
    pbf_builder<perfetto::Attributes> out(attributes);
    const auto add = [&](absl::string_view key, absl::string_view text, uint64_t number) {
      if (text.empty() && number == 0) return;
      std::string attribute;
      pbf_builder<perfetto::Attribute> one(attribute);
      one.add_string(perfetto::Attribute::kKey, std::string(key));
      if (number > 0) {
        one.add_int64(perfetto::Attribute::kNumber, static_cast<int64_t>(std::min(number, kMaxTime)));
      } else {
        one.add_string(perfetto::Attribute::kText, WellFormedUtf8(text));
      }
      out.add_message(perfetto::Attributes::kAttribute, attribute);
    };
    const ProfileMeta& meta = model_.meta;
    add("creator", meta.creator, 0);
    add("host", meta.host, 0);
    add("command", meta.command, 0);
    add("view", ProfileViewText(meta.view), 0);
    add("unit", WeightUnitText(meta.unit), 0);
    add("period_ns", "", meta.period_ns);
    add("duration_ns", "", meta.duration_ns);
    packets_.Write([&](pbf_builder<perfetto::Packet>& packet) {
      packet.add_message(perfetto::Packet::kTraceAttributes, attributes);
    });
  }

  uint64_t Stamp(uint64_t time_ns) const { return TimeSum(clock_.start_ns, time_ns); }

  void WriteSample(uint32_t row) {
    const SampleColumns& samples = model_.samples;
    const uint64_t weight = samples.weight_of(row);
    std::string sample;
    pbf_builder<perfetto::StackSample> out(sample);
    out.add_uint64(perfetto::StackSample::kTask, tracks_.TaskOf(model_.threads[samples.thread[row]]));
    out.add_uint64(perfetto::StackSample::kCallstack, packets_.interner().Callstack(samples.stack[row]));
    out.add_uint64(perfetto::StackSample::kPrimaryWeight, weight);
    if (period_ns_ > 0) {
      const uint64_t cpu_ns = weight * period_ns_;
      out.add_packed_uint64(perfetto::StackSample::kFollowerWeights, &cpu_ns, &cpu_ns + 1);
    }
    packets_.Write([&](pbf_builder<perfetto::Packet>& packet) {
      packet.add_uint64(perfetto::Packet::kTimestamp, Stamp(lanes_.TimeOf(row)));
      packet.add_message(perfetto::Packet::kStackSample, sample);
    });
  }

  void WriteWaits(const ThreadLane& lane) {
    const std::vector<LaneWait> waits = WaitsOfLane(model_, lanes_, lane);
    std::vector<TimeSlice> slices;
    slices.reserve(waits.size());
    for (const LaneWait& wait : waits) slices.push_back({wait.begin_ns, wait.end_ns});
    WriteSlices(slices, {tracks_.OfThread(model_.threads[lane.thread]), "waits", false},
                [&](size_t slice, pbf_builder<perfetto::Event>& out) {
                  const LaneWait& wait = waits[slice];
                  out.add_string(perfetto::Event::kCategories, "wait");
                  out.add_string(perfetto::Event::kName, std::string(WaitKindText(wait.kind)));
                  out.add_uint64(perfetto::Event::kCallstack,
                                 packets_.interner().Callstack(model_.samples.stack[wait.row]));
                  if (wait.end_ns - wait.begin_ns < wait.waited_ns) Annotate("stands_for_ns", wait.waited_ns, out);
                });
  }

  void WriteEvents(const ThreadLane& lane) {
    std::vector<const ModelEvent*> of_process, of_thread;
    for (const ModelEvent* event : lane.events) {
      (model_.threads[event->thread].tid == 0 ? of_process : of_thread).push_back(event);
    }
    const ModelThread& thread = model_.threads[lane.thread];
    WriteEvents(of_process, {tracks_.OfProcess(thread), "pauses and collections", false});
    WriteEvents(of_thread, {tracks_.OfThread(thread), "compilations", true});
  }

  struct Place {
    uint64_t track;
    absl::string_view name;  // of tracks below it
    bool on_it;              // what fits goes onto the track itself
  };

  void WriteEvents(const std::vector<const ModelEvent*>& events, const Place& place) {
    std::vector<TimeSlice> slices;
    slices.reserve(events.size());
    for (const ModelEvent* event : events)
      slices.push_back({event->time_ns, TimeSum(event->time_ns, event->duration_ns)});
    WriteSlices(slices, place, [&](size_t slice, pbf_builder<perfetto::Event>& out) {
      const ModelEvent& event = *events[slice];
      out.add_string(perfetto::Event::kCategories, std::string(ModelEventKindText(event.kind)));
      out.add_string(perfetto::Event::kName, WellFormedUtf8(model_.text(event.name)));
      if (event.detail != 0) Annotate(DetailName(event.kind), model_.text(event.detail), out);
    });
  }

  // `describe` adds name, category and annotations.
  template <typename Describe>
  void WriteSlices(std::span<const TimeSlice> slices, const Place& place, Describe describe) {
    const std::vector<std::vector<SliceStep>> levels = NestSlices(slices);
    for (size_t level = 0; level < levels.size(); ++level) {
      const uint64_t track = level == 0 && place.on_it ? place.track : tracks_.Below(place.track, place.name);
      for (const SliceStep& step : levels[level]) {
        const TimeSlice& slice = slices[step.slice];
        std::string event;
        pbf_builder<perfetto::Event> out(event);
        out.add_enum(perfetto::Event::kType, static_cast<int32_t>(TypeOf(step.kind)));
        out.add_uint64(perfetto::Event::kTrack, track);
        if (step.kind != SliceStep::Kind::kEnd) describe(step.slice, out);
        if (step.kind == SliceStep::Kind::kInstant && slice.end_ns > slice.begin_ns) {
          Annotate("duration_ns", slice.end_ns - slice.begin_ns, out);
        }
        packets_.Write([&](pbf_builder<perfetto::Packet>& packet) {
          packet.add_uint64(perfetto::Packet::kTimestamp, Stamp(step.time_ns));
          packet.add_message(perfetto::Packet::kTrackEvent, event);
        });
      }
    }
  }

  static perfetto::EventType TypeOf(SliceStep::Kind kind) {
    switch (kind) {
      case SliceStep::Kind::kBegin:
        return perfetto::EventType::kSliceBegin;
      case SliceStep::Kind::kEnd:
        return perfetto::EventType::kSliceEnd;
      case SliceStep::Kind::kInstant:
        break;
    }
    return perfetto::EventType::kInstant;
  }

  const ProfileModel& model_;
  const TraceClock clock_;
  const ThreadLanes lanes_;
  PerfettoPackets packets_;
  PerfettoTracks tracks_;
  uint64_t period_ns_ = 0;  // of CPU time that a sample stands for; 0: not known, or the sum is too large
};

}  // namespace

absl::Status PerfettoWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  return PerfettoEncoder(model, sink).Encode();
}

}  // namespace clrsampler
