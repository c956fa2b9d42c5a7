#include "output/otlp.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "output/otlp_fields.h"
#include "protozero/pbf_message.hpp"

namespace clrsampler {
namespace {

using protozero::pbf_message;
using ::testing::ElementsAre;

std::string Written(const ProfileModel& model) {
  std::string bytes;
  const absl::Status written = OtlpWriter().Write(model, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  EXPECT_TRUE(written.ok()) << written;
  return bytes;
}

// What a test looks at: the texts of the dictionary, and each profile's types, period and values.
struct Read {
  explicit Read(const std::string& bytes) {
    std::vector<std::string> encoded;
    pbf_message<otlp::Request> request(bytes);
    while (request.next()) {
      if (request.tag() == otlp::Request::kDictionary) {
        pbf_message<otlp::Dictionary> dictionary(request.get_view());
        while (dictionary.next()) {
          if (dictionary.tag() == otlp::Dictionary::kStrings) {
            strings.push_back(dictionary.get_string());
          } else {
            dictionary.skip();
          }
        }
        continue;
      }
      pbf_message<otlp::ResourceProfiles> resource(request.get_view());
      if (!resource.next(otlp::ResourceProfiles::kScopeProfiles)) continue;
      pbf_message<otlp::ScopeProfiles> scope(resource.get_view());
      if (scope.next(otlp::ScopeProfiles::kProfiles)) encoded.push_back(scope.get_string());
    }
    for (const std::string& profile : encoded) ReadProfile(profile);
  }

  std::string TypeOf(protozero::data_view view) const {
    std::string text;
    pbf_message<otlp::ValueType> type(view);
    while (type.next()) absl::StrAppend(&text, text.empty() ? "" : "/", strings[static_cast<size_t>(type.get_int32())]);
    return text;
  }

  void ReadProfile(const std::string& bytes) {
    std::string text;
    pbf_message<otlp::Profile> profile(bytes);
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
          pbf_message<otlp::Sample> sample(profile.get_view());
          while (sample.next(otlp::Sample::kValues)) {
            for (const int64_t value : sample.get_packed_int64()) absl::StrAppend(&text, " =", value);
          }
          break;
        }
        default:
          profile.skip();
      }
    }
    profiles.push_back(text);
  }

  std::vector<std::string> strings, profiles;
};

std::vector<std::string> ProfilesOf(ProfileView view, WeightUnit unit, uint64_t period_ns = 0) {
  ProfileModelBuilder builder;
  builder.meta().view = view;
  builder.meta().unit = unit;
  builder.meta().period_ns = period_ns;
  const FrameIndex frame = builder.Frame({.name = builder.String("Main")});
  builder.Add({.thread = builder.Thread({.pid = 7}), .stack = builder.Node(kRootNode, frame), .weight = 3});
  builder.Add({.thread = builder.Thread({.pid = 7}), .stack = builder.Node(kRootNode, frame), .weight = 4});
  return Read(Written(*std::move(builder).Build())).profiles;
}

// Types that are named by their period need one, and those that are summed have none (docs/formats.md).
TEST(OtlpTest, EachViewHasTheTypeThatBackendsKnow) {
  EXPECT_THAT(ProfilesOf(ProfileView::kCpu, WeightUnit::kSamples, 10'101'010),
              ElementsAre("samples/count =7 per cpu/nanoseconds 10101010"));
  EXPECT_THAT(ProfilesOf(ProfileView::kOffCpu, WeightUnit::kMicroseconds), ElementsAre("off_cpu/nanoseconds =7000"));
  EXPECT_THAT(ProfilesOf(ProfileView::kAllocations, WeightUnit::kBytes),
              ElementsAre("alloc_space/bytes =7 per memory/bytes 1"));
  EXPECT_THAT(ProfilesOf(ProfileView::kExceptions, WeightUnit::kSamples),
              ElementsAre("exceptions/count =7 per exceptions/count 1"));
  EXPECT_THAT(ProfilesOf(ProfileView::kContention, WeightUnit::kNanoseconds),
              ElementsAre("contention/nanoseconds =7 per contention/nanoseconds 1"));
}

TEST(OtlpTest, ContainersAreResourcesOfTheirOwn) {
  ProfileModelBuilder builder;
  const NodeIndex stack = builder.Node(kRootNode, builder.Frame({.name = builder.String("Main")}));
  const StringIndex comm = builder.String("web");
  for (const char* container : {"one", "two"}) {
    for (const uint32_t pid : {7u, 8u}) {
      builder.Add({.thread = builder.Thread({.pid = pid, .comm = comm, .container_id = builder.String(container)}),
                   .stack = stack});
    }
  }
  const Read read(Written(*std::move(builder).Build()));
  EXPECT_THAT(read.profiles,
              ElementsAre("samples/count =1 =1 per samples/count 1", "samples/count =1 =1 per samples/count 1"));
}

TEST(OtlpTest, TimesThatTheFormatCannotHoldAreAnError) {
  ProfileModelBuilder builder;
  builder.meta().view = ProfileView::kOffCpu;
  builder.meta().unit = WeightUnit::kMicroseconds;
  builder.Add({.thread = builder.Thread({}), .weight = kMaxTotalWeight / 2});
  const absl::Status written =
      OtlpWriter().Write(*std::move(builder).Build(), [](absl::string_view) { return absl::OkStatus(); });
  EXPECT_EQ(written.code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace clrsampler
