#include "output/otlp.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "formats/names/utf8.h"
#include "formats/profile/pprof_fields.h"
#include "output/otlp_fields.h"
#include "protozero/pbf_builder.hpp"
#include "status/status.h"

namespace clrsampler {
namespace {

using protozero::pbf_builder;

constexpr absl::string_view kScopeName = "clrsampler";

// A table of the dictionary: encoded entries, each once, behind a zero value.
class Table {
 public:
  Table() { Add(""); }
  int32_t Add(std::string entry) {
    const auto [found, added] = numbers_.try_emplace(std::move(entry), static_cast<int32_t>(entries_.size()));
    if (added) entries_.push_back(&found->first);
    return found->second;
  }
  template <typename Field>
  void Write(Field field, pbf_builder<otlp::Dictionary>& out) const {
    for (const std::string* entry : entries_) out.add_message(field, *entry);
  }

 private:
  std::map<std::string, int32_t> numbers_;  // whose keys stay where they are
  std::vector<const std::string*> entries_;
};

// What a profile of this view is called, and what one of its values stands for.
struct Types {
  absl::string_view type, unit;
  absl::string_view period_type = {}, period_unit = {};
  uint64_t period = 0;
  uint64_t factor = 1;  // of weights
};

Types TypesOf(const ProfileMeta& meta) {
  const bool counted = meta.unit == WeightUnit::kSamples;
  if (meta.unit == WeightUnit::kBytes) return {"alloc_space", "bytes", "memory", "bytes", 1};
  if (meta.view == ProfileView::kExceptions) return {"exceptions", "count", "exceptions", "count", 1};
  if (counted && meta.period_ns > 0) return {"samples", "count", "cpu", "nanoseconds", meta.period_ns};
  if (counted) return {"samples", "count", "samples", "count", 1};
  const uint64_t factor = meta.unit == WeightUnit::kMicroseconds ? 1000 : 1;
  switch (meta.view) {
    case ProfileView::kOffCpu:
      return {pprof::kOffCpu, "nanoseconds", {}, {}, 0, factor};
    case ProfileView::kWall:
      return {pprof::kWall, "nanoseconds", pprof::kWall, "nanoseconds", 1, factor};
    case ProfileView::kSuspendDelay:
      return {"suspend_delay", "nanoseconds", "suspend_delay", "nanoseconds", 1, factor};
    case ProfileView::kContention:
      return {pprof::kContention, "nanoseconds", pprof::kContention, "nanoseconds", 1, factor};
    case ProfileView::kCpu:
    case ProfileView::kJit:
    case ProfileView::kPause:
    case ProfileView::kAllocations:
    case ProfileView::kExceptions:
      break;
  }
  return {"cpu", "nanoseconds", "cpu", "nanoseconds", 1, factor};
}

absl::string_view FrameType(ModelFrameKind kind) {
  switch (kind) {
    case ModelFrameKind::kKernel:
      return "kernel";
    case ModelFrameKind::kNative:
      return "native";
    case ModelFrameKind::kJit:
    case ModelFrameKind::kR2r:
    case ModelFrameKind::kAot:
      return "dotnet";
    case ModelFrameKind::kUnknown:
    case ModelFrameKind::kRole:
    case ModelFrameKind::kMark:
    case ModelFrameKind::kInlined:
    case ModelFrameKind::kType:
      break;
  }
  return "";
}

// An entry of a table that is encoded when something refers to it.
class Lazy {
 public:
  explicit Lazy(size_t size) : numbers_(size, -1) {}
  template <typename Make>
  int32_t Of(size_t index, Make&& make) {
    if (numbers_[index] < 0) numbers_[index] = make();
    return numbers_[index];
  }

 private:
  std::vector<int32_t> numbers_;
};

class OtlpEncoder {
 public:
  explicit OtlpEncoder(const ProfileModel& model)
      : model_(model), types_(TypesOf(model.meta)), frames_(model.frames.size()), stacks_(model.nodes.size()) {
    string_numbers_.try_emplace("", 0);
    strings_.emplace_back();
  }

  absl::StatusOr<std::string> Encode() {
    if (types_.factor > 1 && model_.total_weight > kMaxTotalWeight / types_.factor) {
      return absl::OutOfRangeError("the time of all samples is more than 2^63 ns, which this format can't hold");
    }
    std::string request;
    pbf_builder<otlp::Request> out(request);
    for (const auto& [resource, rows] : RowsByResource()) {
      out.add_message(otlp::Request::kResourceProfiles, ResourceProfiles(resource, rows));
    }
    out.add_message(otlp::Request::kDictionary, Dictionary());
    return request;
  }

 private:
  using ResourceKey = std::pair<StringIndex, StringIndex>;  // name of the process, container
  struct Row {
    NodeIndex stack;
    ThreadIndex thread;
    SampleState state;
    uint64_t weight;
    auto key() const { return std::tie(stack, thread, state); }
  };

  // Rows that are one sample here are added up: the sample's identity is its stack with its attributes.
  std::map<ResourceKey, std::vector<Row>> RowsByResource() const {
    std::map<ResourceKey, std::vector<Row>> by_resource;
    const SampleColumns& samples = model_.samples;
    for (size_t i = 0; i < samples.size(); ++i) {
      const ModelThread& thread = model_.threads[samples.thread[i]];
      by_resource[{thread.comm, thread.container_id}].push_back(
          {samples.stack[i], samples.thread[i], samples.state_of(i), samples.weight_of(i)});
    }
    for (auto& [resource, rows] : by_resource) {
      std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.key() < b.key(); });
      size_t kept = 0;
      for (const Row& row : rows) {
        if (kept > 0 && rows[kept - 1].key() == row.key()) {
          rows[kept - 1].weight += row.weight;
        } else {
          rows[kept++] = row;
        }
      }
      rows.resize(kept);
    }
    return by_resource;
  }

  int32_t String(absl::string_view text) {
    const auto [found, added] =
        string_numbers_.try_emplace(WellFormedUtf8(text), static_cast<int32_t>(strings_.size()));
    if (added) strings_.push_back(found->first);
    return found->second;
  }

  static std::string StringValue(absl::string_view text) {
    std::string value;
    pbf_builder<otlp::AnyValue>(value).add_string(otlp::AnyValue::kString, WellFormedUtf8(text));
    return value;
  }
  static std::string IntValue(int64_t number) {
    std::string value;
    pbf_builder<otlp::AnyValue>(value).add_int64(otlp::AnyValue::kInt, number);
    return value;
  }

  // Of the dictionary. `value` is an encoded AnyValue.
  int32_t Attribute(absl::string_view key, const std::string& value) {
    std::string attribute;
    pbf_builder<otlp::Attribute> out(attribute);
    out.add_int32(otlp::Attribute::kKey, String(key));
    out.add_message(otlp::Attribute::kValue, value);
    return attributes_.Add(std::move(attribute));
  }

  std::string ResourceProfiles(const ResourceKey& key, const std::vector<Row>& rows) {
    std::string resource, scope, profiles, result;
    pbf_builder<otlp::Resource> attributes(resource);
    const auto attribute = [&](absl::string_view name, absl::string_view text) {
      if (text.empty()) return;
      std::string pair;
      pbf_builder<otlp::KeyValue> out(pair);
      out.add_string(otlp::KeyValue::kKey, std::string(name));
      out.add_message(otlp::KeyValue::kValue, StringValue(text));
      attributes.add_message(otlp::Resource::kAttributes, pair);
    };
    const absl::string_view comm = model_.text(key.first);
    attribute("service.name", comm.empty() ? absl::string_view("unknown_service") : comm);
    attribute("process.executable.name", comm);
    attribute("container.id", model_.text(key.second));
    attribute("host.name", model_.meta.host);
    pbf_builder<otlp::Scope> named(scope);
    named.add_string(otlp::Scope::kName, std::string(kScopeName));
    const absl::string_view creator = model_.meta.creator;
    if (const size_t space = creator.rfind(' '); space != absl::string_view::npos) {
      named.add_string(otlp::Scope::kRelease, WellFormedUtf8(creator.substr(space + 1)));
    }
    pbf_builder<otlp::ScopeProfiles> scoped(profiles);
    scoped.add_message(otlp::ScopeProfiles::kScope, scope);
    scoped.add_message(otlp::ScopeProfiles::kProfiles, Profile(rows));
    pbf_builder<otlp::ResourceProfiles> out(result);
    out.add_message(otlp::ResourceProfiles::kResource, resource);
    out.add_message(otlp::ResourceProfiles::kScopeProfiles, profiles);
    return result;
  }

  std::string ValueType(absl::string_view type, absl::string_view unit) {
    std::string value;
    pbf_builder<otlp::ValueType> out(value);
    out.add_int32(otlp::ValueType::kType, String(type));
    out.add_int32(otlp::ValueType::kUnit, String(unit));
    return value;
  }

  std::string Profile(const std::vector<Row>& rows) {
    const ProfileMeta& meta = model_.meta;
    std::string profile;
    pbf_builder<otlp::Profile> out(profile);
    out.add_message(otlp::Profile::kSampleType, ValueType(types_.type, types_.unit));
    for (const Row& row : rows) out.add_message(otlp::Profile::kSamples, Sample(row));
    if (meta.start_unix_ns > 0) out.add_fixed64(otlp::Profile::kTimeUnixNano, meta.start_unix_ns);
    if (meta.duration_ns > 0) out.add_uint64(otlp::Profile::kDurationNano, meta.duration_ns);
    if (types_.period > 0) {
      out.add_message(otlp::Profile::kPeriodType, ValueType(types_.period_type, types_.period_unit));
      out.add_int64(otlp::Profile::kPeriod, static_cast<int64_t>(types_.period));
    }
    return profile;
  }

  std::string Sample(const Row& row) {
    const ModelThread& thread = model_.threads[row.thread];
    std::vector<int32_t> attributes;
    const auto number = [&](absl::string_view key, uint32_t value) {
      if (value != 0) attributes.push_back(Attribute(key, IntValue(value)));
    };
    number("process.pid", thread.pid);
    number("thread.id", thread.tid);
    if (thread.name != 0) attributes.push_back(Attribute("thread.name", StringValue(model_.text(thread.name))));
    if (row.state != SampleState::kNone) {
      attributes.push_back(Attribute("dotnet.runtime.state", StringValue(SampleStateText(row.state))));
    }
    std::string sample;
    pbf_builder<otlp::Sample> out(sample);
    out.add_int32(otlp::Sample::kStack, Stack(row.stack));
    out.add_packed_int32(otlp::Sample::kAttributes, attributes.begin(), attributes.end());
    const int64_t value = static_cast<int64_t>(row.weight * types_.factor);
    out.add_packed_int64(otlp::Sample::kValues, &value, &value + 1);
    return sample;
  }

  int32_t Stack(NodeIndex leaf) {
    if (leaf == kRootNode) return 0;
    return stacks_.Of(leaf, [&] {
      std::vector<int32_t> locations;  // leaf first
      for (NodeIndex node = leaf; node != kRootNode; node = model_.nodes[node].parent) {
        locations.push_back(Location(model_.nodes[node].frame));
      }
      std::string stack;
      pbf_builder<otlp::Stack>(stack).add_packed_int32(otlp::Stack::kLocations, locations.begin(), locations.end());
      return stack_table_.Add(std::move(stack));
    });
  }

  int32_t Location(FrameIndex index) {
    return frames_.Of(index, [&] {
      const ModelFrame& frame = model_.frames[index];
      std::string line, location;
      pbf_builder<otlp::Line> place(line);
      place.add_int32(otlp::Line::kFunction, Function(frame));
      if (frame.line != 0) place.add_int64(otlp::Line::kLine, frame.line);
      if (frame.column != 0) place.add_int64(otlp::Line::kColumn, frame.column);
      pbf_builder<otlp::Location> out(location);
      if (const int32_t mapping = Mapping(frame); mapping != 0) out.add_int32(otlp::Location::kMapping, mapping);
      out.add_message(otlp::Location::kLines, line);
      std::vector<int32_t> attributes;
      if (const absl::string_view type = FrameType(frame.kind); !type.empty()) {
        attributes.push_back(Attribute("profile.frame.type", StringValue(type)));
      }
      if (frame.tier != 0) attributes.push_back(Attribute("dotnet.tier", StringValue(model_.text(frame.tier))));
      out.add_packed_int32(otlp::Location::kAttributes, attributes.begin(), attributes.end());
      return location_table_.Add(std::move(location));
    });
  }

  int32_t Function(const ModelFrame& frame) {
    std::string function;
    pbf_builder<otlp::Function> out(function);
    out.add_int32(otlp::Function::kName, String(model_.text(frame.name)));
    if (frame.system_name != 0) out.add_int32(otlp::Function::kSystemName, String(model_.text(frame.system_name)));
    if (frame.source_file != 0) out.add_int32(otlp::Function::kFilename, String(model_.text(frame.source_file)));
    return function_table_.Add(std::move(function));
  }

  int32_t Mapping(const ModelFrame& frame) {
    if (frame.build_id == 0 || frame.kind != ModelFrameKind::kNative) return 0;
    const int32_t build = Attribute("process.executable.build_id.gnu", StringValue(model_.text(frame.build_id)));
    std::string mapping;
    pbf_builder<otlp::Mapping> out(mapping);
    out.add_int32(otlp::Mapping::kFilename,
                  String(model_.text(frame.module_path != 0 ? frame.module_path : frame.module)));
    out.add_packed_int32(otlp::Mapping::kAttributes, &build, &build + 1);
    return mapping_table_.Add(std::move(mapping));
  }

  std::string Dictionary() const {
    std::string dictionary;
    pbf_builder<otlp::Dictionary> out(dictionary);
    mapping_table_.Write(otlp::Dictionary::kMappings, out);
    location_table_.Write(otlp::Dictionary::kLocations, out);
    function_table_.Write(otlp::Dictionary::kFunctions, out);
    out.add_message(otlp::Dictionary::kLinks, std::string());
    for (const std::string& text : strings_) out.add_string(otlp::Dictionary::kStrings, text);
    attributes_.Write(otlp::Dictionary::kAttributes, out);
    stack_table_.Write(otlp::Dictionary::kStacks, out);
    return dictionary;
  }

  const ProfileModel& model_;
  const Types types_;
  absl::flat_hash_map<std::string, int32_t> string_numbers_;
  std::vector<std::string> strings_;
  Table attributes_, mapping_table_, function_table_, location_table_, stack_table_;
  Lazy frames_, stacks_;
};

}  // namespace

absl::Status OtlpWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  const absl::StatusOr<std::string> request = OtlpEncoder(model).Encode();
  if (!request.ok()) return request.status();
  return sink(*request);
}

}  // namespace clrsampler
