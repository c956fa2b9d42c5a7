#include "output/otlp_request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/names/utf8.h"
#include "formats/profile/pprof_fields.h"
#include "output/otlp_fields.h"
#include "protozero/pbf_builder.hpp"
#include "protozero/varint.hpp"

namespace clrsampler {
namespace {

using protozero::pbf_builder;

constexpr absl::string_view kScopeName = "clrsampler";
constexpr absl::string_view kUnknownService = "unknown_service";
constexpr uint64_t kMostValue = INT64_MAX;  // of a sample
// The most that is around a part, or in it: tags, lengths, numbers.
constexpr size_t kFieldBytes = 6;     // a tag and a length
constexpr size_t kProfileBytes = 80;  // two types of samples, times, a period
constexpr size_t kSampleBytes = 9;    // all but its numbers
constexpr size_t kTimeBytes = 8;

size_t VarintBytes(uint64_t number) { return static_cast<size_t>(protozero::length_of_varint(number)); }

std::string Attribute(absl::string_view key, const std::string& value) {
  std::string pair;
  pbf_builder<otlp::KeyValue> out(pair);
  out.add_string(otlp::KeyValue::kKey, std::string(key));
  out.add_message(otlp::KeyValue::kValue, value);
  return pair;
}

std::string Encoded(const OtlpResource& resource) {
  std::string result;
  pbf_builder<otlp::Resource> out(result);
  const auto text = [&](absl::string_view key, absl::string_view value) {
    if (!value.empty()) out.add_message(otlp::Resource::kAttributes, Attribute(key, OtlpText(value)));
  };
  text("service.name", resource.service.empty() ? kUnknownService : absl::string_view(resource.service));
  text("process.executable.name", resource.executable);
  if (resource.pid != 0)
    out.add_message(otlp::Resource::kAttributes, Attribute("process.pid", OtlpNumber(resource.pid)));
  text("process.runtime.name", resource.runtime.empty() ? "" : ".NET");
  text("process.runtime.version", resource.runtime);
  text("container.id", resource.container_id);
  text("k8s.pod.uid", resource.pod_uid);
  text("host.name", resource.host);
  resource.labels.ForEach([&](absl::string_view name, const std::string& value) {
    if (name == LabelName(LabelKey::kImageTag)) {
      out.add_message(otlp::Resource::kAttributes, Attribute(name, OtlpTextList(value)));
    } else if (name != LabelName(LabelKey::kServiceName)) {
      text(name, value);
    }
  });
  return result;
}

// A time of a profile lies before its end.
uint64_t UnixTimeOf(const ProfileModel& model, size_t row) {
  const ProfileMeta& meta = model.meta;
  return meta.start_unix_ns + std::min(model.samples.time_of(row), meta.duration_ns - 1);
}

}  // namespace

bool CanBeTimed(const ProfileModel& model, size_t row) {
  return model.samples.time_of(row) != kNoTime && model.meta.start_unix_ns > 0 && model.meta.duration_ns > 0;
}

OtlpKind OtlpCpuKind(uint64_t period_ns) { return {"samples", "count", "cpu", "nanoseconds", period_ns}; }

OtlpValues OtlpValuesOf(const ProfileMeta& meta) {
  const bool counted = meta.unit == WeightUnit::kSamples;
  if (meta.unit == WeightUnit::kBytes) return {{"alloc_space", "bytes", "memory", "bytes", 1}};
  if (meta.view == ProfileView::kExceptions) return {{"exceptions", "count", "exceptions", "count", 1}};
  if (counted && meta.period_ns > 0) return {OtlpCpuKind(meta.period_ns)};
  if (counted) return {{"samples", "count", "samples", "count", 1}};
  const uint64_t factor = meta.unit == WeightUnit::kMicroseconds ? 1000 : 1;
  switch (meta.view) {
    case ProfileView::kOffCpu:
      return {{pprof::kOffCpu, "nanoseconds"}, factor};
    case ProfileView::kWall:
      return {{pprof::kWall, "nanoseconds", pprof::kWall, "nanoseconds", 1}, factor};
    case ProfileView::kSuspendDelay:
      return {{"suspend_delay", "nanoseconds", "suspend_delay", "nanoseconds", 1}, factor};
    case ProfileView::kContention:
      return {{pprof::kContention, "nanoseconds", pprof::kContention, "nanoseconds", 1}, factor};
    case ProfileView::kCpu:
    case ProfileView::kJit:
    case ProfileView::kPause:
    case ProfileView::kAllocations:
    case ProfileView::kExceptions:
      break;
  }
  return {{"cpu", "nanoseconds", "cpu", "nanoseconds", 1}, factor};
}

size_t OtlpRequest::AddModel(const ProfileModel& model) {
  sources_.push_back(
      {&model, std::vector<int32_t>(model.frames.size(), -1), std::vector<int32_t>(model.nodes.size(), -1)});
  return sources_.size() - 1;
}

void OtlpRequest::Add(size_t model, size_t row, const OtlpResource& resource, const OtlpKind& kind, uint64_t value) {
  Source& source = sources_[model];
  const ProfileMeta& meta = source.model->meta;
  const auto [profiles, first] = resources_.try_emplace(resource);
  if (first) bytes_ += Encoded(resource).size() + Scope().size() + 4 * kFieldBytes;
  const auto [samples, first_of_kind] = profiles->second.try_emplace({kind, meta.start_unix_ns, meta.duration_ns});
  if (first_of_kind) {
    bytes_ += kProfileBytes;
    // Its texts are in the dictionary from now on, so they count.
    (void)dictionary_.ValueType(kind.type, kind.unit);
    if (kind.period > 0) (void)dictionary_.ValueType(kind.period_type, kind.period_unit);
  }
  Identity identity{Stack(source, source.model->samples.stack[row]),
                    AttributesOf(*source.model, row, /*with_pid=*/resource.pid == 0),
                    dictionary_.Link(source.model->links[source.model->samples.link_of(row)])};
  size_t bytes = kSampleBytes + VarintBytes(static_cast<uint64_t>(identity.stack));
  if (identity.link != 0) bytes += 1 + VarintBytes(static_cast<uint64_t>(identity.link));
  for (const int32_t attribute : identity.attributes) bytes += VarintBytes(static_cast<uint64_t>(attribute));
  const auto [sample, added] = samples->second.try_emplace(std::move(identity));
  bytes_ += added ? bytes : 0;
  if (kind.timed) {
    bytes_ += kTimeBytes + (added ? 2 * kFieldBytes : 0);  // two lengths grow with the times
    sample->second.times.push_back(UnixTimeOf(*source.model, row));
    return;
  }
  uint64_t& sum = sample->second.sum;
  const size_t before = added ? 0 : VarintBytes(sum);
  sum += std::min(value, kMostValue - sum);
  bytes_ += VarintBytes(sum) - before;
}

size_t OtlpRequest::profiles() const {
  size_t count = 0;
  for (const auto& [resource, profiles] : resources_) count += profiles.size();
  return count;
}

int32_t OtlpRequest::Location(Source& source, FrameIndex frame) {
  int32_t& number = source.locations[frame];
  if (number < 0) number = dictionary_.Location(*source.model, source.model->frames[frame]);
  return number;
}

int32_t OtlpRequest::Stack(Source& source, NodeIndex leaf) {
  if (leaf == kRootNode) return 0;
  int32_t& number = source.stacks[leaf];
  if (number < 0) {
    std::vector<int32_t> locations;
    for (NodeIndex node = leaf; node != kRootNode; node = source.model->nodes[node].parent) {
      locations.push_back(Location(source, source.model->nodes[node].frame));
    }
    number = dictionary_.Stack(locations);
  }
  return number;
}

std::vector<int32_t> OtlpRequest::AttributesOf(const ProfileModel& model, size_t row, bool with_pid) {
  const ModelThread& thread = model.threads[model.samples.thread[row]];
  std::vector<int32_t> attributes;
  if (with_pid && thread.pid != 0) attributes.push_back(dictionary_.Attribute("process.pid", thread.pid));
  if (thread.tid != 0) attributes.push_back(dictionary_.Attribute("thread.id", thread.tid));
  if (thread.name != 0) attributes.push_back(dictionary_.Attribute("thread.name", model.text(thread.name)));
  if (const SampleState state = model.samples.state_of(row); state != SampleState::kNone) {
    attributes.push_back(dictionary_.Attribute("dotnet.runtime.state", SampleStateText(state)));
  }
  return attributes;
}

std::string OtlpRequest::Scope() const {
  std::string scope;
  pbf_builder<otlp::Scope> named(scope);
  named.add_string(otlp::Scope::kName, std::string(kScopeName));
  if (const size_t space = creator_.rfind(' '); space != std::string::npos) {
    named.add_string(otlp::Scope::kRelease, WellFormedUtf8(creator_.substr(space + 1)));
  }
  return scope;
}

std::string OtlpRequest::ResourceProfiles(const OtlpResource& resource, const Profiles& profiles) {
  std::string scoped, result;
  pbf_builder<otlp::ScopeProfiles> scope(scoped);
  scope.add_message(otlp::ScopeProfiles::kScope, Scope());
  for (const auto& [key, samples] : profiles) scope.add_message(otlp::ScopeProfiles::kProfiles, Profile(key, samples));
  pbf_builder<otlp::ResourceProfiles> out(result);
  out.add_message(otlp::ResourceProfiles::kResource, Encoded(resource));
  out.add_message(otlp::ResourceProfiles::kScopeProfiles, scoped);
  return result;
}

std::string OtlpRequest::Profile(const ProfileKey& key, const Samples& samples) {
  const OtlpKind& kind = key.kind;
  std::string profile;
  pbf_builder<otlp::Profile> out(profile);
  out.add_message(otlp::Profile::kSampleType, dictionary_.ValueType(kind.type, kind.unit));
  for (const auto& [identity, seen] : samples) {
    std::string sample;
    pbf_builder<otlp::Sample> one(sample);
    one.add_int32(otlp::Sample::kStack, identity.stack);
    one.add_packed_int32(otlp::Sample::kAttributes, identity.attributes.begin(), identity.attributes.end());
    if (identity.link != 0) one.add_int32(otlp::Sample::kLink, identity.link);
    if (kind.timed) {
      one.add_packed_fixed64(otlp::Sample::kTimes, seen.times.begin(), seen.times.end());
    } else {
      const int64_t value = static_cast<int64_t>(seen.sum);
      one.add_packed_int64(otlp::Sample::kValues, &value, &value + 1);
    }
    out.add_message(otlp::Profile::kSamples, sample);
  }
  if (key.start_unix_ns > 0) out.add_fixed64(otlp::Profile::kTimeUnixNano, key.start_unix_ns);
  if (key.duration_ns > 0) out.add_uint64(otlp::Profile::kDurationNano, key.duration_ns);
  if (kind.period > 0) {
    out.add_message(otlp::Profile::kPeriodType, dictionary_.ValueType(kind.period_type, kind.period_unit));
    out.add_int64(otlp::Profile::kPeriod, static_cast<int64_t>(kind.period));
  }
  return profile;
}

std::string OtlpRequest::Encode() && {
  std::string request;
  pbf_builder<otlp::Request> out(request);
  for (const auto& [resource, profiles] : resources_) {
    out.add_message(otlp::Request::kResourceProfiles, ResourceProfiles(resource, profiles));
  }
  out.add_message(otlp::Request::kDictionary, dictionary_.Encode());
  return request;
}

}  // namespace clrsampler
