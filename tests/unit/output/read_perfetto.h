// A small reader of Perfetto traces for tests: packets of one sequence, and the tables that they refer to.
#ifndef CLRSAMPLER_TESTS_UNIT_OUTPUT_READ_PERFETTO_H_
#define CLRSAMPLER_TESTS_UNIT_OUTPUT_READ_PERFETTO_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "output/perfetto.h"
#include "output/perfetto_fields.h"
#include "protozero/pbf_message.hpp"

namespace clrsampler::test_support {

struct PerfettoFrame {
  std::string name, mapping, build_id, source, kind_text;
  uint64_t place = 0;
  uint32_t line = 0;
  int32_t kind = 0;
  bool has_mapping = false;
};

struct PerfettoSample {
  uint64_t time_ns = 0, weight = 0;
  uint32_t pid = 0, tid = 0;
  std::vector<PerfettoFrame> stack;  // the outermost frame first
  std::vector<uint64_t> followers;
};

struct PerfettoTrack {
  std::string name, process, thread, label;
  uint64_t parent = 0;
  int32_t pid = 0;
  int64_t tid = 0;
};

struct PerfettoEvent {
  uint64_t time_ns = 0, track = 0;
  int32_t type = 0;
  std::string name, category;
  std::map<std::string, std::string> annotations;
  size_t frames = 0;  // of its callstack
};

class PerfettoTrace {
 public:
  explicit PerfettoTrace(const ProfileModel& model) {
    const absl::Status written = PerfettoWriter().Write(model, [&](absl::string_view piece) {
      bytes_.append(piece.data(), piece.size());
      return absl::OkStatus();
    });
    if (!written.ok()) std::abort();
    protozero::pbf_message<perfetto::Trace> trace(bytes_);
    while (trace.next(perfetto::Trace::kPacket)) ReadPacket(trace.get_view());
  }

  std::map<uint32_t, uint64_t> clocks;
  uint32_t primary_clock = 0, default_clock = 0;
  std::vector<std::string> counters;
  std::vector<PerfettoSample> samples;
  std::map<uint64_t, PerfettoTrack> tracks;
  std::vector<PerfettoEvent> events;
  std::map<std::string, std::string> attributes;
  std::vector<uint32_t> flags;  // of each packet

 private:
  using View = protozero::data_view;
  using Table = std::map<uint64_t, std::string>;

  template <typename Tag>
  static void ForEach(View view, const std::function<void(protozero::pbf_message<Tag>&)>& field) {
    protozero::pbf_message<Tag> message(view);
    while (message.next()) field(message);
  }

  void ReadPacket(View view) {
    using perfetto::Packet;
    uint64_t time_ns = 0;
    ForEach<Packet>(view, [&](auto& field) {  // interned data first, wherever it stands
      if (field.tag() != Packet::kInternedData) return field.skip();
      ForEach<perfetto::Interned>(field.get_view(), [&](auto& entry) {
        const auto table = entry.tag();
        const std::string bytes = entry.get_string();
        protozero::pbf_message<perfetto::Text> numbered(bytes);  // all of them begin with their number
        numbered.next(perfetto::Text::kId);
        tables_[table][numbered.get_uint64()] = bytes;
      });
    });
    ForEach<Packet>(view, [&](auto& field) {
      switch (field.tag()) {
        case Packet::kTimestamp:
          time_ns = field.get_uint64();
          break;
        case Packet::kSequenceFlags:
          flags.push_back(field.get_uint32());
          break;
        case Packet::kClockSnapshot:
          ReadClocks(field.get_view());
          break;
        case Packet::kDefaults:
          ReadDefaults(field.get_view());
          break;
        case Packet::kTraceAttributes:
          ReadAttributes(field.get_view());
          break;
        case Packet::kTrackDescriptor:
          ReadTrack(field.get_view());
          break;
        case Packet::kStackSample:
          samples.push_back(Sample(field.get_view(), time_ns));
          break;
        case Packet::kTrackEvent:
          events.push_back(Event(field.get_view(), time_ns));
          break;
        default:
          field.skip();
      }
    });
  }

  void ReadClocks(View view) {
    ForEach<perfetto::ClockSnapshot>(view, [&](auto& field) {
      if (field.tag() == perfetto::ClockSnapshot::kPrimary) {
        primary_clock = field.get_uint32();
        return;
      }
      protozero::pbf_message<perfetto::Clock> clock(field.get_view());
      clock.next(perfetto::Clock::kId);
      const uint32_t id = clock.get_uint32();
      clock.next(perfetto::Clock::kTimestamp);
      clocks[id] = clock.get_uint64();
    });
  }

  void ReadDefaults(View view) {
    ForEach<perfetto::Defaults>(view, [&](auto& field) {
      if (field.tag() == perfetto::Defaults::kClock) {
        default_clock = field.get_uint32();
        return;
      }
      ForEach<perfetto::StackSampleDefaults>(field.get_view(), [&](auto& one) {
        if (one.tag() == perfetto::StackSampleDefaults::kSource) return one.skip();
        std::string name, unit;
        ForEach<perfetto::Counter>(one.get_view(), [&](auto& part) {
          if (part.tag() == perfetto::Counter::kName) {
            name = part.get_string();
          } else if (part.tag() == perfetto::Counter::kUnit) {
            unit = std::to_string(part.get_enum());
          } else {
            unit = part.get_string();
          }
        });
        counters.push_back(name + "/" + unit);
      });
    });
  }

  void ReadAttributes(View view) {
    ForEach<perfetto::Attributes>(view, [&](auto& field) {
      protozero::pbf_message<perfetto::Attribute> attribute(field.get_view());
      attribute.next(perfetto::Attribute::kKey);
      const std::string key = attribute.get_string();
      attribute.next();
      attributes[key] = attribute.tag() == perfetto::Attribute::kText ? attribute.get_string()
                                                                      : std::to_string(attribute.get_int64());
    });
  }

  void ReadTrack(View view) {
    PerfettoTrack track;
    uint64_t number = 0;
    ForEach<perfetto::Track>(view, [&](auto& field) {
      switch (field.tag()) {
        case perfetto::Track::kId:
          number = field.get_uint64();
          break;
        case perfetto::Track::kName:
          track.name = field.get_string();
          break;
        case perfetto::Track::kParent:
          track.parent = field.get_uint64();
          break;
        case perfetto::Track::kProcess:
          ForEach<perfetto::Process>(field.get_view(), [&](auto& part) {
            if (part.tag() == perfetto::Process::kPid) {
              track.pid = part.get_int32();
            } else {
              const bool is_name = part.tag() == perfetto::Process::kName;  // known before it is read only
              (is_name ? track.process : track.label) = part.get_string();
            }
          });
          break;
        case perfetto::Track::kThread:
          ForEach<perfetto::Thread>(field.get_view(), [&](auto& part) {
            if (part.tag() == perfetto::Thread::kPid) {
              track.pid = part.get_int32();
            } else if (part.tag() == perfetto::Thread::kTid) {
              track.tid = part.get_int64();
            } else {
              track.thread = part.get_string();
            }
          });
          break;
      }
    });
    tracks[number] = track;
  }

  std::string Text(perfetto::Interned table, uint64_t number) {
    protozero::pbf_message<perfetto::Text> text(tables_[table].at(number));
    text.next(perfetto::Text::kBytes);
    return text.get_string();
  }

  PerfettoFrame Frame(uint64_t number) {
    using perfetto::Interned;
    PerfettoFrame frame;
    ForEach<perfetto::Frame>(tables_[Interned::kFrames].at(number), [&](auto& field) {
      switch (field.tag()) {
        case perfetto::Frame::kId:
          return field.skip();
        case perfetto::Frame::kName:
          frame.name = Text(Interned::kFunctionNames, field.get_uint64());
          break;
        case perfetto::Frame::kMapping:
          frame.has_mapping = true;
          ForEach<perfetto::Mapping>(tables_[Interned::kMappings].at(field.get_uint64()), [&](auto& part) {
            if (part.tag() == perfetto::Mapping::kId) return part.skip();
            const bool path = part.tag() == perfetto::Mapping::kPath;
            (path ? frame.mapping : frame.build_id) =
                Text(path ? Interned::kMappingPaths : Interned::kBuildIds, part.get_uint64());
          });
          break;
        case perfetto::Frame::kPlace:
          frame.place = field.get_uint64();
          break;
        case perfetto::Frame::kSource:
          frame.source = Text(Interned::kSourcePaths, field.get_uint64());
          break;
        case perfetto::Frame::kLine:
          frame.line = field.get_uint32();
          break;
        case perfetto::Frame::kKind:
          frame.kind = field.get_enum();
          break;
        case perfetto::Frame::kKindText:
          frame.kind_text = field.get_string();
          break;
      }
    });
    return frame;
  }

  std::vector<PerfettoFrame> Stack(uint64_t number) {
    std::vector<PerfettoFrame> frames;
    ForEach<perfetto::Callstack>(tables_[perfetto::Interned::kCallstacks].at(number), [&](auto& field) {
      if (field.tag() == perfetto::Callstack::kId) return field.skip();
      frames.push_back(Frame(field.get_uint64()));
    });
    return frames;
  }

  PerfettoSample Sample(View view, uint64_t time_ns) {
    PerfettoSample sample;
    sample.time_ns = time_ns;
    ForEach<perfetto::StackSample>(view, [&](auto& field) {
      switch (field.tag()) {
        case perfetto::StackSample::kTask:
          ForEach<perfetto::Task>(tables_[perfetto::Interned::kTasks].at(field.get_uint64()), [&](auto& part) {
            if (part.tag() == perfetto::Task::kId) return part.skip();
            const bool is_pid = part.tag() == perfetto::Task::kPid;
            (is_pid ? sample.pid : sample.tid) = part.get_uint32();
          });
          break;
        case perfetto::StackSample::kCallstack:
          sample.stack = Stack(field.get_uint64());
          break;
        case perfetto::StackSample::kPrimaryWeight:
          sample.weight = field.get_uint64();
          break;
        case perfetto::StackSample::kFollowerWeights:
          for (const uint64_t value : field.get_packed_uint64()) sample.followers.push_back(value);
          break;
      }
    });
    return sample;
  }

  PerfettoEvent Event(View view, uint64_t time_ns) {
    PerfettoEvent event;
    event.time_ns = time_ns;
    ForEach<perfetto::Event>(view, [&](auto& field) {
      switch (field.tag()) {
        case perfetto::Event::kType:
          event.type = field.get_enum();
          break;
        case perfetto::Event::kTrack:
          event.track = field.get_uint64();
          break;
        case perfetto::Event::kName:
          event.name = field.get_string();
          break;
        case perfetto::Event::kCategories:
          event.category = field.get_string();
          break;
        case perfetto::Event::kCallstack:
          event.frames = Stack(field.get_uint64()).size();
          break;
        case perfetto::Event::kAnnotations: {
          std::string name, value;
          ForEach<perfetto::Annotation>(field.get_view(), [&](auto& part) {
            if (part.tag() == perfetto::Annotation::kUnsigned) {
              value = std::to_string(part.get_uint64());
            } else {
              const bool is_name = part.tag() == perfetto::Annotation::kName;
              (is_name ? name : value) = part.get_string();
            }
          });
          event.annotations[name] = value;
          break;
        }
      }
    });
    return event;
  }

  std::string bytes_;
  std::map<perfetto::Interned, Table> tables_;
};

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_OUTPUT_READ_PERFETTO_H_
