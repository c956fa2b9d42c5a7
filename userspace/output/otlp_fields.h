// Numbers of the fields of OpenTelemetry's profiles, and of what they are sent in.
//
// Source: open-telemetry/opentelemetry-proto v1.10.0, profiles/v1development/profiles.proto, common/v1/common.proto and
// resource/v1/resource.proto. The signal is not stable yet: the version is part of the package's name and of the path
// that requests are sent to.
#ifndef CLRSAMPLER_OUTPUT_OTLP_FIELDS_H_
#define CLRSAMPLER_OUTPUT_OTLP_FIELDS_H_

#include "absl/strings/string_view.h"
#include "protozero/types.hpp"

namespace clrsampler::otlp {

#define CLRSAMPLER_OTLP_PROFILES_VERSION "v1development"
inline constexpr absl::string_view kVersion = CLRSAMPLER_OTLP_PROFILES_VERSION;
inline constexpr absl::string_view kService =
    "opentelemetry.proto.collector.profiles." CLRSAMPLER_OTLP_PROFILES_VERSION ".ProfilesService";
#undef CLRSAMPLER_OTLP_PROFILES_VERSION

enum class Request : protozero::pbf_tag_type { kResourceProfiles = 1, kDictionary = 2 };
enum class Dictionary : protozero::pbf_tag_type {
  kMappings = 1,
  kLocations = 2,
  kFunctions = 3,
  kLinks = 4,
  kStrings = 5,
  kAttributes = 6,
  kStacks = 7
};
enum class ResourceProfiles : protozero::pbf_tag_type { kResource = 1, kScopeProfiles = 2 };
enum class Resource : protozero::pbf_tag_type { kAttributes = 1 };
enum class ScopeProfiles : protozero::pbf_tag_type { kScope = 1, kProfiles = 2 };
enum class Scope : protozero::pbf_tag_type { kName = 1, kRelease = 2 };
enum class KeyValue : protozero::pbf_tag_type { kKey = 1, kValue = 2 };
enum class AnyValue : protozero::pbf_tag_type { kString = 1, kInt = 3, kArray = 5 };
enum class ArrayValue : protozero::pbf_tag_type { kValues = 1 };
enum class Attribute : protozero::pbf_tag_type { kKey = 1, kValue = 2, kUnit = 3 };
enum class Profile : protozero::pbf_tag_type {
  kSampleType = 1,
  kSamples = 2,
  kTimeUnixNano = 3,
  kDurationNano = 4,
  kPeriodType = 5,
  kPeriod = 6
};
enum class ValueType : protozero::pbf_tag_type { kType = 1, kUnit = 2 };
enum class Sample : protozero::pbf_tag_type { kStack = 1, kAttributes = 2, kLink = 3, kValues = 4, kTimes = 5 };
enum class Link : protozero::pbf_tag_type { kTraceId = 1, kSpanId = 2 };
enum class Mapping : protozero::pbf_tag_type { kFilename = 4, kAttributes = 5 };
enum class Stack : protozero::pbf_tag_type { kLocations = 1 };
enum class Location : protozero::pbf_tag_type { kMapping = 1, kAddress = 2, kLines = 3, kAttributes = 4 };
enum class Line : protozero::pbf_tag_type { kFunction = 1, kLine = 2, kColumn = 3 };
enum class Function : protozero::pbf_tag_type { kName = 1, kSystemName = 2, kFilename = 3 };

}  // namespace clrsampler::otlp

#endif  // CLRSAMPLER_OUTPUT_OTLP_FIELDS_H_
