// The tables that all profiles of one OTLP request share: stacks, locations, functions, mappings, links, attributes,
// strings.
//
// An entry gets into its table when something refers to it, and only once. So a table holds nothing twice and nothing
// that is not used. Each table begins with its zero value, as the format's rules demand (otlp_fields.h).
#ifndef CLRSAMPLER_OUTPUT_OTLP_DICTIONARY_H_
#define CLRSAMPLER_OUTPUT_OTLP_DICTIONARY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "formats/profile/trace_link.h"

namespace clrsampler {

// Entries are encoded messages or texts.
class OtlpTable {
 public:
  OtlpTable() { Add(""); }
  int32_t Add(std::string entry);
  const std::vector<const std::string*>& entries() const { return entries_; }
  size_t bytes() const { return bytes_; }

 private:
  std::map<std::string, int32_t> numbers_;  // whose keys stay where they are
  std::vector<const std::string*> entries_;
  size_t bytes_ = 0;
};

class OtlpDictionary {
 public:
  int32_t String(absl::string_view text);
  int32_t Attribute(absl::string_view key, absl::string_view text);
  int32_t Attribute(absl::string_view key, uint64_t number);
  int32_t Location(const ProfileModel& model, const ModelFrame& frame);
  int32_t Stack(const std::vector<int32_t>& locations);  // the leaf first
  int32_t Link(const TraceLink& link);                   // 0: it is not valid
  // An encoded ValueType.
  std::string ValueType(absl::string_view type, absl::string_view unit);

  // The encoded dictionary has at most so many.
  size_t bytes() const;
  std::string Encode() const;

 private:
  int32_t AttributeOf(absl::string_view key, const std::string& value);
  int32_t Function(const ProfileModel& model, const ModelFrame& frame);
  int32_t Mapping(const ProfileModel& model, const ModelFrame& frame);

  OtlpTable strings_, attributes_, mappings_, functions_, locations_, stacks_, links_;
};

// Encoded AnyValues.
std::string OtlpText(absl::string_view text);
std::string OtlpTextList(absl::string_view text);  // of this one
std::string OtlpNumber(uint64_t number);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_OTLP_DICTIONARY_H_
