// An OTLP request as tests look at it: the texts of the dictionary, the attributes of resources, and of each profile
// its types, period and values.
#ifndef CLRSAMPLER_TESTS_UNIT_OUTPUT_READ_OTLP_H_
#define CLRSAMPLER_TESTS_UNIT_OUTPUT_READ_OTLP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "output/otlp_fields.h"
#include "protozero/pbf_message.hpp"

namespace clrsampler::test_support {

struct ReadOtlp {
  explicit ReadOtlp(const std::string& bytes) {
    std::vector<std::string> encoded;
    protozero::pbf_message<otlp::Request> request(bytes);
    while (request.next()) {
      if (request.tag() == otlp::Request::kDictionary) {
        ReadDictionary(request.get_view());
      } else {
        ReadResource(request.get_view(), encoded);
      }
    }
    for (const std::string& profile : encoded) ReadProfile(profile);
  }

  // The sum of all values of the profiles whose text begins so.
  int64_t Sum(const std::string& type) const {
    int64_t sum = 0;
    for (size_t i = 0; i < profiles.size(); ++i) {
      if (profiles[i].rfind(type, 0) == 0) sum += sums[i];
    }
    return sum;
  }

  std::vector<std::string> strings;
  std::vector<std::string> resources;  // "service.name=shop-web host.name=web-3"
  std::vector<std::string> profiles;   // "samples/count =1 =1 per cpu/nanoseconds 50000000"
  std::vector<std::string> mappings;   // "/lib/libc.so.6 process.executable.build_id.gnu=c0ffee"
  std::vector<std::string> links;      // the bytes of "TRACE/SPAN"
  std::vector<int64_t> sums;           // of each profile

 private:
  static std::string LinkOf(protozero::data_view view) {
    std::string text;
    protozero::pbf_message<otlp::Link> link(view);
    while (link.next()) absl::StrAppend(&text, text.empty() ? "" : "/", link.get_string());
    return text;
  }

  const std::string& StringAt(int32_t index) const { return strings.at(static_cast<size_t>(index)); }

  std::string AttributeOf(protozero::data_view view) const {
    std::string text;
    protozero::pbf_message<otlp::Attribute> attribute(view);
    while (attribute.next()) {
      if (attribute.tag() == otlp::Attribute::kKey) {
        text = absl::StrCat(StringAt(attribute.get_int32()), "=");
      } else {
        protozero::pbf_message<otlp::AnyValue> value(attribute.get_view());
        while (value.next(otlp::AnyValue::kString)) absl::StrAppend(&text, value.get_string());
      }
    }
    return text;
  }

  std::string MappingOf(protozero::data_view view, const std::vector<protozero::data_view>& attributes) const {
    std::string text;
    protozero::pbf_message<otlp::Mapping> mapping(view);
    while (mapping.next()) {
      if (mapping.tag() == otlp::Mapping::kFilename) {
        text = StringAt(mapping.get_int32());
        continue;
      }
      for (const int32_t index : mapping.get_packed_int32()) {
        absl::StrAppend(&text, " ", AttributeOf(attributes.at(static_cast<size_t>(index))));
      }
    }
    return text;
  }

  void ReadDictionary(protozero::data_view view) {
    std::vector<protozero::data_view> encoded_mappings, attributes;
    protozero::pbf_message<otlp::Dictionary> dictionary(view);
    while (dictionary.next()) {
      if (dictionary.tag() == otlp::Dictionary::kStrings) {
        strings.push_back(dictionary.get_string());
      } else if (dictionary.tag() == otlp::Dictionary::kLinks) {
        links.push_back(LinkOf(dictionary.get_view()));
      } else if (dictionary.tag() == otlp::Dictionary::kMappings) {
        encoded_mappings.push_back(dictionary.get_view());
      } else if (dictionary.tag() == otlp::Dictionary::kAttributes) {
        attributes.push_back(dictionary.get_view());
      } else {
        dictionary.skip();
      }
    }
    for (const protozero::data_view mapping : encoded_mappings) mappings.push_back(MappingOf(mapping, attributes));
  }

  void ReadResource(protozero::data_view view, std::vector<std::string>& encoded) {
    protozero::pbf_message<otlp::ResourceProfiles> resource(view);
    while (resource.next()) {
      if (resource.tag() == otlp::ResourceProfiles::kResource) {
        resources.push_back(AttributesOf(resource.get_view()));
        continue;
      }
      protozero::pbf_message<otlp::ScopeProfiles> scope(resource.get_view());
      while (scope.next()) {
        if (scope.tag() == otlp::ScopeProfiles::kProfiles) {
          encoded.push_back(scope.get_string());
        } else {
          scope.skip();
        }
      }
    }
  }

  static std::string TextsOf(protozero::data_view view) {
    std::string text;
    protozero::pbf_message<otlp::ArrayValue> array(view);
    while (array.next(otlp::ArrayValue::kValues)) {
      protozero::pbf_message<otlp::AnyValue> value(array.get_view());
      while (value.next(otlp::AnyValue::kString)) absl::StrAppend(&text, text.empty() ? "" : " ", value.get_string());
    }
    return text;
  }

  static std::string AttributesOf(protozero::data_view view) {
    std::string text;
    protozero::pbf_message<otlp::Resource> resource(view);
    while (resource.next(otlp::Resource::kAttributes)) {
      protozero::pbf_message<otlp::KeyValue> pair(resource.get_view());
      while (pair.next()) {
        if (pair.tag() == otlp::KeyValue::kKey) {
          absl::StrAppend(&text, text.empty() ? "" : " ", pair.get_string(), "=");
          continue;
        }
        protozero::pbf_message<otlp::AnyValue> value(pair.get_view());
        while (value.next()) {
          if (value.tag() == otlp::AnyValue::kString) {
            absl::StrAppend(&text, value.get_string());
          } else if (value.tag() == otlp::AnyValue::kArray) {
            absl::StrAppend(&text, "[", TextsOf(value.get_view()), "]");
          } else {
            absl::StrAppend(&text, value.get_int64());
          }
        }
      }
    }
    return text;
  }

  std::string TypeOf(protozero::data_view view) const {
    std::string text;
    protozero::pbf_message<otlp::ValueType> type(view);
    while (type.next()) absl::StrAppend(&text, text.empty() ? "" : "/", strings[static_cast<size_t>(type.get_int32())]);
    return text;
  }

  void ReadProfile(const std::string& bytes) {
    std::string text;
    int64_t sum = 0;
    protozero::pbf_message<otlp::Profile> profile(bytes);
    while (profile.next()) {
      switch (profile.tag()) {
        case otlp::Profile::kSampleType:
          absl::StrAppend(&text, TypeOf(profile.get_view()));
          break;
        case otlp::Profile::kPeriodType:
          absl::StrAppend(&text, " per ", TypeOf(profile.get_view()));
          break;
        case otlp::Profile::kPeriod:
          absl::StrAppend(&text, " ", profile.get_int64());
          break;
        case otlp::Profile::kSamples: {
          protozero::pbf_message<otlp::Sample> sample(profile.get_view());
          while (sample.next()) {
            if (sample.tag() == otlp::Sample::kValues) {
              for (const int64_t value : sample.get_packed_int64()) {
                absl::StrAppend(&text, " =", value);
                sum += value;
              }
            } else if (sample.tag() == otlp::Sample::kTimes) {  // each of which counts as 1
              for (const uint64_t time : sample.get_packed_fixed64()) {
                absl::StrAppend(&text, " @", time);
                ++sum;
              }
            } else {
              sample.skip();
            }
          }
          break;
        }
        default:
          profile.skip();
      }
    }
    profiles.push_back(text);
    sums.push_back(sum);
  }
};

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_OUTPUT_READ_OTLP_H_
