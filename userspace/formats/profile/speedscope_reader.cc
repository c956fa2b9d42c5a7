#include "formats/profile/speedscope_reader.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/profile/json_tables.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxSpeedscopeDepth = 64;
constexpr size_t kMaxSpeedscopeRows = kReadLimits.samples;   // of samples, weights, events and frames
constexpr size_t kMaxSampleFrames = 4 * kMaxSpeedscopeRows;  // of all samples; they are said anew in each
constexpr size_t kMaxProfiles = 100'000;                     // of a file; a profile is a thread or a process

absl::Status NotSpeedscope(absl::string_view why) {
  return WithHint(absl::DataLossError(absl::StrCat("not a speedscope profile: ", why)),
                  "was the file written to its end, and copied as a whole?");
}

struct Event {
  double at = 0;
  uint32_t frame = 0;
  char type = 0;  // 'O' opens, 'C' closes
};

// One of the file's profiles; the ranges are in SpeedscopeTables.
struct FileProfile {
  std::string type, name, unit;
  size_t samples_begin = 0, samples_end = 0;
  size_t weights_begin = 0, weights_end = 0;
  size_t events_begin = 0, events_end = 0;
};

struct SpeedscopeTables {
  std::string exporter;
  std::vector<FrameIndex> frames;  // the model's
  std::vector<FileProfile> profiles;
  std::vector<uint32_t> sample_frames;  // of all samples, one behind the other
  std::vector<size_t> sample_ends;      // in sample_frames
  std::vector<double> weights;
  std::vector<Event> events;
};

// Where in the file a value stands.
enum class Place : uint8_t {
  kTop,
  kFile,      // {"shared": ..., "profiles": ..., "exporter": ""}
  kShared,    // {"frames": []}
  kFrames,    // []
  kFrame,     // {"name": "", "file": "", "line": 1, "col": 1}
  kProfiles,  // []
  kProfile,   // {"type": "", "name": "", "unit": "", "samples": [], "weights": [], "events": []}
  kSamples,   // []
  kSample,    // [0, 1, 2]
  kWeights,   // [0.5, 1]
  kEvents,    // []
  kEvent,     // {"type": "O", "at": 0.5, "frame": 0}
  kOther,     // nothing that is read
};

// Takes the parser's events (nlohmann's SAX interface) and fills the tables.
class SpeedscopeEvents {
 public:
  SpeedscopeEvents(SpeedscopeTables& tables, ProfileModelBuilder& builder) : tables_(tables), builder_(builder) {}

  absl::Status status() const { return status_; }

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(int64_t value) { return Number(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) { return Number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) { return Number(value); }
  bool binary(nlohmann::json::binary_t&) { return true; }

  bool string(std::string& value) {
    switch (place()) {
      case Place::kFile:
        if (key_ == "exporter") tables_.exporter = value.substr(0, kMaxModelStringBytes);
        break;
      case Place::kFrame:
        if (key_ == "name") frame_.name = builder_.String(value);
        if (key_ == "file") frame_.source_file = builder_.String(value);
        return builder_.ok();
      case Place::kProfile: {
        if (value.size() > kMaxModelStringBytes) return Fail("a name of more than 1 MiB");
        FileProfile& profile = tables_.profiles.back();
        if (key_ == "type") profile.type = value;
        if (key_ == "name") profile.name = value;
        if (key_ == "unit") profile.unit = value;
        break;
      }
      case Place::kEvent:
        if (key_ == "type" && value.size() == 1) tables_.events.back().type = value.front();
        break;
      default:
        break;
    }
    return true;
  }

  bool key(std::string& key) {
    key_ = std::move(key);
    return true;
  }
  bool start_object(size_t) { return Enter(ObjectAt(place())); }
  bool start_array(size_t) { return Enter(ArrayAt(place())); }
  bool end_object() {
    const Place left = place();
    places_.pop_back();
    if (tables_.frames.size() >= kMaxSpeedscopeRows) return Fail("it has too many frames");
    if (left == Place::kFrame) tables_.frames.push_back(builder_.Frame(std::exchange(frame_, {})));
    // Events without content would take more room here than in the file.
    if (left == Place::kEvent && tables_.events.back().type != 'O' && tables_.events.back().type != 'C') {
      return Fail("an event neither opens nor closes a frame");
    }
    return true;
  }
  bool end_array() {
    const Place left = place();
    places_.pop_back();
    if (tables_.sample_ends.size() >= kMaxSpeedscopeRows) return Fail("it has too many samples");
    if (left == Place::kSample) tables_.sample_ends.push_back(tables_.sample_frames.size());
    if (tables_.profiles.empty()) return true;
    FileProfile& profile = tables_.profiles.back();
    if (left == Place::kSamples) profile.samples_end = tables_.sample_ends.size();
    if (left == Place::kWeights) profile.weights_end = tables_.weights.size();
    if (left == Place::kEvents) profile.events_end = tables_.events.size();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(absl::StrCat("the JSON text is damaged at byte ", position));
  }

 private:
  Place place() const { return places_.back(); }

  bool Fail(absl::string_view why) {
    status_ = NotSpeedscope(why);
    return false;
  }

  Place ObjectAt(Place parent) const {
    switch (parent) {
      case Place::kTop:
        return Place::kFile;
      case Place::kFile:
        return key_ == "shared" ? Place::kShared : Place::kOther;
      case Place::kFrames:
        return Place::kFrame;
      case Place::kProfiles:
        return Place::kProfile;
      case Place::kEvents:
        return Place::kEvent;
      default:
        return Place::kOther;
    }
  }
  Place ArrayAt(Place parent) const {
    switch (parent) {
      case Place::kFile:
        return key_ == "profiles" ? Place::kProfiles : Place::kOther;
      case Place::kShared:
        return key_ == "frames" ? Place::kFrames : Place::kOther;
      case Place::kProfile:
        return key_ == "samples"   ? Place::kSamples
               : key_ == "weights" ? Place::kWeights
               : key_ == "events"  ? Place::kEvents
                                   : Place::kOther;
      case Place::kSamples:
        return Place::kSample;
      default:
        return Place::kOther;
    }
  }

  bool Enter(Place next) {
    if (places_.size() > kMaxSpeedscopeDepth) return Fail(absl::StrCat("values are nested ", places_.size(), " deep"));
    places_.push_back(next);
    if (tables_.events.size() >= kMaxSpeedscopeRows) return Fail("it has too many events");
    if (next == Place::kEvent) tables_.events.emplace_back();
    if (next == Place::kProfile) {
      if (tables_.profiles.size() == kMaxProfiles) return Fail(absl::StrCat("more than ", kMaxProfiles, " profiles"));
      tables_.profiles.emplace_back();
    }
    if (tables_.profiles.empty()) return true;
    FileProfile& profile = tables_.profiles.back();
    if (next == Place::kSamples) profile.samples_begin = tables_.sample_ends.size();
    if (next == Place::kWeights) profile.weights_begin = tables_.weights.size();
    if (next == Place::kEvents) profile.events_begin = tables_.events.size();
    return true;
  }

  bool Number(double value) {
    const Place here = place();
    if (tables_.weights.size() >= kMaxSpeedscopeRows || tables_.sample_frames.size() >= kMaxSampleFrames) {
      return Fail("it has too many samples");
    }
    if (here == Place::kWeights) {
      tables_.weights.push_back(value);
    } else if (here == Place::kSample || (here == Place::kEvent && key_ == "frame")) {
      if (!(value >= 0 && value < 4294967296.0) || value != std::floor(value)) return Fail("a frame that is no index");
      if (here == Place::kSample) {
        tables_.sample_frames.push_back(static_cast<uint32_t>(value));
      } else {
        tables_.events.back().frame = static_cast<uint32_t>(value);
      }
    } else if (here == Place::kEvent && key_ == "at") {
      tables_.events.back().at = value;
    } else if (here == Place::kFrame && key_ == "line") {
      frame_.line = PlaceInText(value);
    } else if (here == Place::kFrame && key_ == "col") {
      frame_.column = PlaceInText(value);
    }
    return true;
  }

  // A line or a column that is none becomes 0, not known. Browsers write -1 for code without a file.
  static uint32_t PlaceInText(double value) {
    return value >= 1 && value < 4294967296.0 && value == std::floor(value) ? static_cast<uint32_t>(value) : 0;
  }

  SpeedscopeTables& tables_;
  ProfileModelBuilder& builder_;
  absl::Status status_;
  std::vector<Place> places_ = {Place::kTop};
  std::string key_;   // the last one
  ModelFrame frame_;  // that is being read
};

struct Unit {
  WeightUnit unit;
  double scale;  // from the file's unit
};
std::optional<Unit> UnitOf(absl::string_view text) {
  if (text == "none") return Unit{WeightUnit::kSamples, 1};
  if (text == "bytes") return Unit{WeightUnit::kBytes, 1};
  if (text == "microseconds") return Unit{WeightUnit::kMicroseconds, 1};
  if (text == "nanoseconds") return Unit{WeightUnit::kNanoseconds, 1};
  if (text == "milliseconds") return Unit{WeightUnit::kNanoseconds, 1e6};
  if (text == "seconds") return Unit{WeightUnit::kNanoseconds, 1e9};
  return std::nullopt;
}

// Tables of a file -> the model, each index checked.
class SpeedscopeMaker {
 public:
  SpeedscopeMaker(const SpeedscopeTables& tables, ProfileModelBuilder& builder) : tables_(tables), builder_(builder) {}

  absl::Status Make() {
    builder_.meta().creator = tables_.exporter;
    for (const FileProfile& profile : tables_.profiles) {
      const std::optional<Unit> unit = UnitOf(profile.unit);
      if (!unit) {
        return WithHint(absl::UnimplementedError("the values of the profile are not samples or times"),
                        "clrsampler reads profiles of CPU time and of other times, not of memory");
      }
      if (&profile != &tables_.profiles.front() && unit->unit != builder_.meta().unit) {
        return WithHint(absl::UnimplementedError("the profiles of the file have different units"),
                        "write its profiles of samples and those of times to files of their own");
      }
      builder_.meta().unit = unit->unit;
      scale_ = unit->scale;
      ModelThread thread;
      thread.comm = builder_.String(profile.name);
      thread_ = builder_.Thread(thread);
      if (profile.type == "sampled") {
        RETURN_IF_ERROR(AddSamples(profile));
      } else if (profile.type == "evented") {
        RETURN_IF_ERROR(AddEvents(profile));
      } else {
        return NotSpeedscope("a profile is neither sampled nor evented");
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddSamples(const FileProfile& profile) {
    const size_t samples = profile.samples_end - profile.samples_begin;
    const size_t weights = profile.weights_end - profile.weights_begin;
    if (samples != weights) return NotSpeedscope(absl::StrCat(samples, " samples with ", weights, " weights"));
    for (size_t i = 0; i < samples && builder_.ok(); ++i) {
      const size_t sample = profile.samples_begin + i;
      NodeIndex node = kRootNode;
      for (size_t j = sample == 0 ? 0 : tables_.sample_ends[sample - 1]; j < tables_.sample_ends[sample]; ++j) {
        if (!builder_.ok()) return absl::OkStatus();  // Build says why
        if (tables_.sample_frames[j] >= tables_.frames.size()) return UnknownFrame(tables_.sample_frames[j]);
        node = builder_.Node(node, tables_.frames[tables_.sample_frames[j]]);
      }
      RETURN_IF_ERROR(Add(node, 0, tables_.weights[profile.weights_begin + i]));
    }
    return absl::OkStatus();
  }

  absl::Status AddEvents(const FileProfile& profile) {
    std::vector<std::pair<uint32_t, NodeIndex>> open;  // frame of the file, and the stack up to it
    double since = 0;
    for (size_t i = profile.events_begin; i < profile.events_end && builder_.ok(); ++i) {
      const Event& event = tables_.events[i];
      if (i > profile.events_begin && event.at < since) return NotSpeedscope("an event is earlier than the one before");
      // Nothing open is no work.
      if (!open.empty()) RETURN_IF_ERROR(Add(open.back().second, since, event.at));
      since = event.at;
      if (event.type == 'O') {
        if (event.frame >= tables_.frames.size()) return UnknownFrame(event.frame);
        const NodeIndex parent = open.empty() ? kRootNode : open.back().second;
        open.emplace_back(event.frame, builder_.Node(parent, tables_.frames[event.frame]));
      } else if (event.type == 'C' && !open.empty() && open.back().first == event.frame) {
        open.pop_back();
      } else {
        return NotSpeedscope("an event closes a frame that is not the last one opened");
      }
    }
    return absl::OkStatus();
  }

  static absl::Status UnknownFrame(uint32_t frame) {
    return NotSpeedscope(absl::StrCat("frame ", frame, " is not in its table"));
  }

  // Both ends are rounded, not their distance, so that roundings don't add up.
  absl::Status Add(NodeIndex node, double from, double to) {
    const double begin = from * scale_, end = to * scale_;
    constexpr double kLimit = static_cast<double>(kMaxTotalWeight);
    if (!(std::fabs(begin) < kLimit && std::fabs(end) < kLimit && begin <= end)) {
      return NotSpeedscope("a weight is negative, or 2^63 or more");
    }
    const uint64_t weight = static_cast<uint64_t>(std::llround(end)) - static_cast<uint64_t>(std::llround(begin));
    builder_.Add({.thread = thread_, .stack = node, .weight = weight});
    return absl::OkStatus();
  }

  const SpeedscopeTables& tables_;
  ProfileModelBuilder& builder_;
  ThreadIndex thread_ = 0;
  double scale_ = 1;
};

}  // namespace

absl::StatusOr<ProfileModel> ReadSpeedscope(absl::string_view text) {
  SpeedscopeTables tables;
  ProfileModelBuilder builder(kReadLimits);
  SpeedscopeEvents events(tables, builder);
  RETURN_IF_ERROR(ParseTables(text, events, builder, NotSpeedscope("the JSON text is damaged")));
  RETURN_IF_ERROR(SpeedscopeMaker(tables, builder).Make());
  return std::move(builder).Build();
}

}  // namespace clrsampler
