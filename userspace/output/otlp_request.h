// One request for the profiles service of a collector: samples of models in, bytes of protobuf out.
//
// A resource holds profiles, each of one kind; equal samples of a profile are added up, or are one with their times.
// The request knows how large it gets while samples come, so that the code that fills it can stop in time.
#ifndef CLRSAMPLER_OUTPUT_OTLP_REQUEST_H_
#define CLRSAMPLER_OUTPUT_OTLP_REQUEST_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/labels/process_labels.h"
#include "formats/profile/profile_model.h"
#include "output/otlp_dictionary.h"

namespace clrsampler {

// The origin of profiles. Empty texts are left out, but a service always has a name.
struct OtlpResource {
  std::string service;
  std::string executable;
  std::string container_id;
  std::string pod_uid;
  std::string runtime;  // the version of .NET
  std::string host;
  uint32_t pid = 0;           // 0: samples say it
  ProcessLabels labels = {};  // what the process says of itself; its service.name is in `service`

  friend auto operator<=>(const OtlpResource&, const OtlpResource&) = default;
};

// The meaning of the values of a profile. A period of 0 is none. The texts are constants.
struct OtlpKind {
  absl::string_view type, unit;
  absl::string_view period_type = {}, period_unit = {};
  uint64_t period = 0;
  // Each sample is a time, and counts as 1. The format has the times of other values as well, but a profile with a
  // period and several values a sample is an error to Pyroscope, which then takes nothing of the request.
  bool timed = false;

  friend bool operator<(const OtlpKind& a, const OtlpKind& b) {
    return std::tie(a.type, a.unit, a.period_type, a.period_unit, a.period, a.timed) <
           std::tie(b.type, b.unit, b.period_type, b.period_unit, b.period, b.timed);
  }
};

// How a model with this meta is called. `factor`: what its weights are multiplied with to be values of that kind.
struct OtlpValues {
  OtlpKind kind;
  uint64_t factor = 1;
};
OtlpValues OtlpValuesOf(const ProfileMeta& meta);
// Samples of CPU time, each of which stands for so much.
OtlpKind OtlpCpuKind(uint64_t period_ns);
// Whether a row can be in a profile with times: it has one, and so has the profile.
bool CanBeTimed(const ProfileModel& model, size_t row);

class OtlpRequest {
 public:
  // `creator` is "NAME VERSION".
  explicit OtlpRequest(absl::string_view creator) : creator_(creator) {}

  // The model is borrowed until the last Add. Gives the number that Add takes.
  size_t AddModel(const ProfileModel& model);
  // A row of that model, with its value. Where a kind has times the row has one, and the value is 1.
  void Add(size_t model, size_t row, const OtlpResource& resource, const OtlpKind& kind, uint64_t value);

  size_t profiles() const;
  // The encoded request has at most so many.
  size_t bytes() const { return bytes_ + dictionary_.bytes(); }
  std::string Encode() &&;

 private:
  struct Identity {
    int32_t stack;
    std::vector<int32_t> attributes;
    int32_t link;
    friend auto operator<=>(const Identity&, const Identity&) = default;
  };
  struct ProfileKey {
    OtlpKind kind;
    uint64_t start_unix_ns, duration_ns;
    friend bool operator<(const ProfileKey& a, const ProfileKey& b) {
      return std::tie(a.kind, a.start_unix_ns, a.duration_ns) < std::tie(b.kind, b.start_unix_ns, b.duration_ns);
    }
  };
  struct Seen {
    uint64_t sum = 0;
    std::vector<uint64_t> times;  // instead of the sum, in profiles with times
  };
  using Samples = std::map<Identity, Seen>;
  using Profiles = std::map<ProfileKey, Samples>;
  // The parts of a model that have been encoded; -1: not yet.
  struct Source {
    const ProfileModel* model;
    std::vector<int32_t> locations;  // by frame
    std::vector<int32_t> stacks;     // by node
  };

  int32_t Location(Source& source, FrameIndex frame);
  int32_t Stack(Source& source, NodeIndex leaf);
  std::vector<int32_t> AttributesOf(const ProfileModel& model, size_t row, bool with_pid);
  std::string ResourceProfiles(const OtlpResource& resource, const Profiles& profiles);
  std::string Profile(const ProfileKey& key, const Samples& samples);
  std::string Scope() const;

  const std::string creator_;
  OtlpDictionary dictionary_;
  std::vector<Source> sources_;
  std::map<OtlpResource, Profiles> resources_;
  size_t bytes_ = 0;  // of all but the dictionary
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_OTLP_REQUEST_H_
