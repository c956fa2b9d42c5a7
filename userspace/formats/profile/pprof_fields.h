// Numbers of the fields of a pprof profile, for its reader and its writer.
//
// Source: proto/profile.proto and proto/README.md of google/pprof (a stable, documented format). A profile is one gzip
// member that holds one message `Profile`. Texts are indexes of string_table, whose entry 0 is ""; ids are not 0.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PPROF_FIELDS_H_
#define CLRSAMPLER_FORMATS_PROFILE_PPROF_FIELDS_H_

#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "protozero/types.hpp"

namespace clrsampler::pprof {

enum class Profile : protozero::pbf_tag_type {
  kSampleType = 1,  // ValueType, repeated: what the values of each sample are
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,  // UTC
  kDurationNanos = 10,
  kPeriodType = 11,  // ValueType
  kPeriod = 12,
  kComment = 13,  // texts
  kDefaultSampleType = 14,
};

enum class ValueType : protozero::pbf_tag_type { kType = 1, kUnit = 2 };

enum class Sample : protozero::pbf_tag_type {
  kLocationId = 1,  // leaf first
  kValue = 2,
  kLabel = 3,
};

enum class Label : protozero::pbf_tag_type { kKey = 1, kStr = 2, kNum = 3, kNumUnit = 4 };

enum class Mapping : protozero::pbf_tag_type {
  kId = 1,
  kFilename = 5,
  kBuildId = 6,
  kHasFunctions = 7,
  kHasFilenames = 8,
  kHasLineNumbers = 9,
};

enum class Location : protozero::pbf_tag_type {
  kId = 1,
  kMappingId = 2,
  kAddress = 3,
  kLine = 4,  // repeated: the innermost of inlined functions first
};

enum class Line : protozero::pbf_tag_type { kFunctionId = 1, kLine = 2, kColumn = 3 };

enum class Function : protozero::pbf_tag_type { kId = 1, kName = 2, kSystemName = 3, kFilename = 4 };

// The texts for things that the format has no field for, so that our own files come back as they were. Frames: the name
// of the mapping, "[jit] Shop", is its kind and module. Only code of ELF images has what the format means by a mapping.
// The profile: comments "view: pause".
inline constexpr absl::string_view kKernelMapping = "[kernel.kallsyms]";
inline constexpr absl::string_view kViewComment = "view: ";
inline constexpr absl::string_view kHostComment = "host: ";
inline constexpr absl::string_view kCommandComment = "command: ";
inline constexpr absl::string_view kWholeHostComment = "whole host";

// Types of values other than CPU time that both sides know.
inline constexpr absl::string_view kExceptions = "exceptions";  // a count
inline constexpr absl::string_view kContention = "contention";  // a time: that of waiting for locks
inline constexpr absl::string_view kOffCpu = "off_cpu";         // a time: that of waiting
inline constexpr absl::string_view kWall = "wall";              // a time: that of waiting and running

// Keys of labels.
inline constexpr absl::string_view kPidLabel = "pid";
inline constexpr absl::string_view kTidLabel = "tid";
inline constexpr absl::string_view kCommLabel = "comm";
inline constexpr absl::string_view kThreadLabel = "thread";
inline constexpr absl::string_view kContainerLabel = "container_id";
inline constexpr absl::string_view kTierLabel = "jit_tier";   // of the leaf
inline constexpr absl::string_view kTraceLabel = "trace_id";  // hexadecimal, as the next one
inline constexpr absl::string_view kSpanLabel = "span_id";
inline constexpr absl::string_view kStateLabel = "gc_state";  // of SampleStateText; left out where there is none

}  // namespace clrsampler::pprof

#endif  // CLRSAMPLER_FORMATS_PROFILE_PPROF_FIELDS_H_
