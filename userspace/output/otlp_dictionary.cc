#include "output/otlp_dictionary.h"

#include <utility>

#include "formats/names/utf8.h"
#include "output/otlp_fields.h"
#include "protozero/pbf_builder.hpp"
#include "protozero/varint.hpp"

namespace clrsampler {
namespace {

using protozero::pbf_builder;

constexpr size_t kAroundBytes = 1 + 5;  // the most there is around a dictionary: a tag and a length

// The bytes of a message's field with so many bytes: a tag of one byte, a length, and the field.
size_t FieldBytes(size_t bytes) { return 1 + static_cast<size_t>(protozero::length_of_varint(bytes)) + bytes; }

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

}  // namespace

int32_t OtlpTable::Add(std::string entry) {
  const auto [found, added] = numbers_.try_emplace(std::move(entry), static_cast<int32_t>(entries_.size()));
  if (added) {
    entries_.push_back(&found->first);
    bytes_ += FieldBytes(found->first.size());
  }
  return found->second;
}

std::string OtlpText(absl::string_view text) {
  std::string value;
  pbf_builder<otlp::AnyValue>(value).add_string(otlp::AnyValue::kString, WellFormedUtf8(text));
  return value;
}

std::string OtlpTextList(absl::string_view text) {
  std::string value;
  pbf_builder<otlp::AnyValue> out(value);
  pbf_builder<otlp::ArrayValue>(out, otlp::AnyValue::kArray).add_message(otlp::ArrayValue::kValues, OtlpText(text));
  return value;
}

std::string OtlpNumber(uint64_t number) {
  std::string value;
  pbf_builder<otlp::AnyValue>(value).add_int64(otlp::AnyValue::kInt, static_cast<int64_t>(number));
  return value;
}

int32_t OtlpDictionary::String(absl::string_view text) { return strings_.Add(WellFormedUtf8(text)); }

int32_t OtlpDictionary::AttributeOf(absl::string_view key, const std::string& value) {
  std::string attribute;
  pbf_builder<otlp::Attribute> out(attribute);
  out.add_int32(otlp::Attribute::kKey, String(key));
  out.add_message(otlp::Attribute::kValue, value);
  return attributes_.Add(std::move(attribute));
}

int32_t OtlpDictionary::Attribute(absl::string_view key, absl::string_view text) {
  return AttributeOf(key, OtlpText(text));
}

int32_t OtlpDictionary::Attribute(absl::string_view key, uint64_t number) {
  return AttributeOf(key, OtlpNumber(number));
}

int32_t OtlpDictionary::Stack(const std::vector<int32_t>& locations) {
  std::string stack;
  pbf_builder<otlp::Stack>(stack).add_packed_int32(otlp::Stack::kLocations, locations.begin(), locations.end());
  return stacks_.Add(std::move(stack));
}

int32_t OtlpDictionary::Link(const TraceLink& link) {
  if (!link.valid()) return 0;
  std::string encoded;
  pbf_builder<otlp::Link> out(encoded);
  out.add_bytes(otlp::Link::kTraceId, std::string(link.trace()));
  out.add_bytes(otlp::Link::kSpanId, std::string(link.span()));
  return links_.Add(std::move(encoded));
}

int32_t OtlpDictionary::Location(const ProfileModel& model, const ModelFrame& frame) {
  std::string line, location;
  pbf_builder<otlp::Line> place(line);
  place.add_int32(otlp::Line::kFunction, Function(model, frame));
  if (frame.line != 0) place.add_int64(otlp::Line::kLine, frame.line);
  if (frame.column != 0) place.add_int64(otlp::Line::kColumn, frame.column);
  pbf_builder<otlp::Location> out(location);
  if (const int32_t mapping = Mapping(model, frame); mapping != 0) out.add_int32(otlp::Location::kMapping, mapping);
  out.add_message(otlp::Location::kLines, line);
  std::vector<int32_t> attributes;
  if (const absl::string_view type = FrameType(frame.kind); !type.empty()) {
    attributes.push_back(Attribute("profile.frame.type", type));
  }
  if (frame.tier != 0) attributes.push_back(Attribute("dotnet.tier", model.text(frame.tier)));
  out.add_packed_int32(otlp::Location::kAttributes, attributes.begin(), attributes.end());
  return locations_.Add(std::move(location));
}

int32_t OtlpDictionary::Function(const ProfileModel& model, const ModelFrame& frame) {
  std::string function;
  pbf_builder<otlp::Function> out(function);
  out.add_int32(otlp::Function::kName, String(model.text(frame.name)));
  if (frame.system_name != 0) out.add_int32(otlp::Function::kSystemName, String(model.text(frame.system_name)));
  if (frame.source_file != 0) out.add_int32(otlp::Function::kFilename, String(model.text(frame.source_file)));
  return functions_.Add(std::move(function));
}

int32_t OtlpDictionary::Mapping(const ProfileModel& model, const ModelFrame& frame) {
  const bool of_file =
      frame.kind == ModelFrameKind::kNative || frame.kind == ModelFrameKind::kR2r || frame.kind == ModelFrameKind::kAot;
  if (!of_file) return 0;
  std::vector<int32_t> builds;  // an entry must say one at least
  if (frame.build_id != 0) builds.push_back(Attribute("process.executable.build_id.gnu", model.text(frame.build_id)));
  if (frame.file_hash != 0) {
    builds.push_back(Attribute("process.executable.build_id.htlhash", model.text(frame.file_hash)));
  }
  if (builds.empty()) return 0;
  std::string mapping;
  pbf_builder<otlp::Mapping> out(mapping);
  out.add_int32(otlp::Mapping::kFilename,
                String(model.text(frame.module_path != 0 ? frame.module_path : frame.module)));
  out.add_packed_int32(otlp::Mapping::kAttributes, builds.begin(), builds.end());
  return mappings_.Add(std::move(mapping));
}

std::string OtlpDictionary::ValueType(absl::string_view type, absl::string_view unit) {
  std::string value;
  pbf_builder<otlp::ValueType> out(value);
  out.add_int32(otlp::ValueType::kType, String(type));
  out.add_int32(otlp::ValueType::kUnit, String(unit));
  return value;
}

size_t OtlpDictionary::bytes() const {
  size_t bytes = kAroundBytes;
  for (const OtlpTable* table : {&strings_, &attributes_, &mappings_, &functions_, &locations_, &stacks_, &links_}) {
    bytes += table->bytes();
  }
  return bytes;
}

std::string OtlpDictionary::Encode() const {
  std::string dictionary;
  pbf_builder<otlp::Dictionary> out(dictionary);
  const auto write = [&](otlp::Dictionary field, const OtlpTable& table) {
    for (const std::string* entry : table.entries()) out.add_message(field, *entry);
  };
  write(otlp::Dictionary::kMappings, mappings_);
  write(otlp::Dictionary::kLocations, locations_);
  write(otlp::Dictionary::kFunctions, functions_);
  write(otlp::Dictionary::kLinks, links_);
  write(otlp::Dictionary::kStrings, strings_);
  write(otlp::Dictionary::kAttributes, attributes_);
  write(otlp::Dictionary::kStacks, stacks_);
  return dictionary;
}

}  // namespace clrsampler
