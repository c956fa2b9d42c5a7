// Numbers of the fields of a Perfetto trace, as far as they are written.
//
// Source: google/perfetto v58.2, protos/perfetto/trace: trace_packet.proto, trace_packet_defaults.proto,
// clock_snapshot.proto, interned_data/interned_data.proto, profiling/profile_common.proto,
// profiling/stack_sample.proto, track_event/track_event.proto, track_event/track_descriptor.proto,
// track_event/debug_annotation.proto; and protos/perfetto/common/trace_attributes.proto. All of them are parts of the
// stable interface.
#ifndef CLRSAMPLER_OUTPUT_PERFETTO_FIELDS_H_
#define CLRSAMPLER_OUTPUT_PERFETTO_FIELDS_H_

#include <cstdint>

#include "protozero/types.hpp"

namespace clrsampler::perfetto {

enum class Trace : protozero::pbf_tag_type { kPacket = 1 };
enum class Packet : protozero::pbf_tag_type {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kDefaults = 59,
  kTrackDescriptor = 60,
  kFirstOnSequence = 87,
  kTraceAttributes = 126,
  kStackSample = 135
};
// Values of kSequenceFlags. The references of a packet came after a packet with the first one.
inline constexpr uint32_t kStateCleared = 1, kNeedsState = 2;

enum class Defaults : protozero::pbf_tag_type { kClock = 58, kStackSample = 100 };
enum class StackSampleDefaults : protozero::pbf_tag_type { kSource = 1, kPrimary = 2, kFollowers = 3 };
enum class Counter : protozero::pbf_tag_type { kName = 2, kUnit = 3, kUnitText = 4 };
enum class CounterUnit : int32_t { kNanoseconds = 1, kBytes = 4, kCount = 9 };
enum class StackSample : protozero::pbf_tag_type {
  kTask = 2,
  kCallstack = 6,
  kPrimaryWeight = 11,
  kFollowerWeights = 14
};

enum class ClockSnapshot : protozero::pbf_tag_type { kClocks = 1, kPrimary = 2 };
enum class Clock : protozero::pbf_tag_type { kId = 1, kTimestamp = 2 };
enum class BuiltinClock : uint32_t { kRealtime = 1, kMonotonic = 3, kTraceFile = 11 };

enum class Attributes : protozero::pbf_tag_type { kAttribute = 1 };
enum class Attribute : protozero::pbf_tag_type { kKey = 1, kNumber = 2, kText = 3 };

enum class Interned : protozero::pbf_tag_type {
  kFunctionNames = 5,
  kFrames = 6,
  kCallstacks = 7,
  kBuildIds = 16,
  kMappingPaths = 17,
  kSourcePaths = 18,
  kMappings = 19,
  kTasks = 48
};
enum class Text : protozero::pbf_tag_type { kId = 1, kBytes = 2 };
enum class Task : protozero::pbf_tag_type { kId = 1, kPid = 2, kTid = 3 };
enum class Mapping : protozero::pbf_tag_type { kId = 1, kBuildId = 2, kPath = 7 };
enum class Frame : protozero::pbf_tag_type {
  kId = 1,
  kName = 2,
  kMapping = 3,
  kPlace = 4,
  kSource = 5,
  kLine = 6,
  kKind = 7,
  kKindText = 8
};
enum class FrameKind : int32_t { kNative = 1, kKernel = 2, kJit = 4, kGc = 5 };
enum class Callstack : protozero::pbf_tag_type { kId = 1, kFrames = 2 };  // the outermost frame first

enum class Track : protozero::pbf_tag_type { kId = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5 };
enum class Process : protozero::pbf_tag_type { kPid = 1, kName = 6, kLabels = 8 };
enum class Thread : protozero::pbf_tag_type { kPid = 1, kTid = 2, kName = 5 };
enum class Event : protozero::pbf_tag_type {
  kAnnotations = 4,
  kType = 9,
  kTrack = 11,
  kCategories = 22,
  kName = 23,
  kCallstack = 56
};
enum class EventType : int32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3 };
enum class Annotation : protozero::pbf_tag_type { kUnsigned = 3, kText = 6, kName = 10 };

}  // namespace clrsampler::perfetto

#endif  // CLRSAMPLER_OUTPUT_PERFETTO_FIELDS_H_
