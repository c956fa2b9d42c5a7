#include "formats/profile/pprof_reader.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/profile/pprof_fields.h"
#include "formats/profile/pprof_message.h"
#include "formats/profile/pprof_tables.h"
#include "protozero/exception.hpp"
#include "protozero/pbf_message.hpp"
#include "status/status.h"

namespace clrsampler {
namespace {

using protozero::pbf_message;

// The limit of the frames of all samples together, for each byte of the file. A location takes at least a byte, and
// real ones have a few inlined functions at most. Small files may have more.
constexpr size_t kMaxFramesPerByte = 8;
constexpr size_t kMinFrameBudget = 1 << 20;
constexpr size_t kMaxNumberBytes = 32;  // of a label's text; with spaces and zeros

absl::Status NotPprof(absl::string_view why) {
  return WithHint(absl::DataLossError(absl::StrCat("not a pprof profile: ", why)),
                  "was the file written to its end, and copied as a whole?");
}

bool IsAllocatedBytes(absl::string_view type, absl::string_view unit) {
  return type == "alloc_space" && unit == "bytes";
}

// Nanoseconds of a unit of time; 0: it is none.
uint64_t NanosecondsOf(absl::string_view unit) {
  if (unit == "nanoseconds" || unit == "ns") return 1;
  if (unit == "microseconds" || unit == "us") return 1'000;
  if (unit == "milliseconds" || unit == "ms") return 1'000'000;
  if (unit == "seconds" || unit == "s") return 1'000'000'000;
  return 0;
}

ProfileView ViewOf(absl::string_view type, absl::string_view unit) {
  if (IsAllocatedBytes(type, unit)) return ProfileView::kAllocations;
  if (type == pprof::kExceptions && unit == "count") return ProfileView::kExceptions;
  if (type == pprof::kContention && NanosecondsOf(unit) > 0) return ProfileView::kContention;
  if (type == pprof::kOffCpu && NanosecondsOf(unit) > 0) return ProfileView::kOffCpu;
  if (type == pprof::kWall && NanosecondsOf(unit) > 0) return ProfileView::kWall;
  return type == "suspend_delay" ? ProfileView::kSuspendDelay : ProfileView::kCpu;
}

class PprofReader {
 public:
  explicit PprofReader(absl::string_view bytes)
      : bytes_(bytes), file_(ReadPprofTables(bytes)), strings_(file_.texts.size(), kNoString) {}

  absl::StatusOr<ProfileModel> Read() && {
    if (file_.full()) return NotPprof("its tables are larger than those of any program");
    if (file_.sample_types.empty()) return NotPprof("it does not say what its values are");
    if (file_.sample_types.size() > kMaxPprofSampleTypes) {
      return NotPprof(absl::StrCat("its samples have more than ", kMaxPprofSampleTypes, " values"));
    }
    if (file_.texts.empty() || file_.texts.front().size != 0)
      return NotPprof("its table of strings does not begin with \"\"");
    RETURN_IF_ERROR(ChooseValue());
    ReadMeta();
    const protozero::data_view view(bytes_.data(), bytes_.size());
    absl::Status status;
    pbf_message<pprof::Profile> profile(view);
    while (status.ok() && builder_.ok() && profile.next()) {
      if (profile.tag() == pprof::Profile::kSample && IsMessage(profile)) {
        status = ReadSample(profile.get_view());
      } else {
        profile.skip();
      }
    }
    RETURN_IF_ERROR(status);
    return std::move(builder_).Build();
  }

 private:
  absl::string_view TextOf(uint64_t index) const {
    if (index >= file_.texts.size()) return "";
    return bytes_.substr(file_.texts[index].begin, file_.texts[index].size);
  }

  // The same text in the model. Each is hashed once: a file may refer to a text of 1 MiB millions of times.
  StringIndex StringOf(uint64_t index) {
    if (index >= strings_.size()) return 0;
    StringIndex& known = strings_[index];
    if (known == kNoString) known = builder_.String(TextOf(index));
    return known;
  }

  absl::Status ChooseValue() {
    int best = 0;
    for (size_t i = 0; i < file_.sample_types.size(); ++i) {
      const absl::string_view type = TextOf(file_.sample_types[i].type), unit = TextOf(file_.sample_types[i].unit);
      const bool by_default = file_.default_type != 0 && type == TextOf(file_.default_type);
      const int rank = unit == "count" && (type == "samples" || type == pprof::kExceptions) ? 5
                       : NanosecondsOf(unit) > 0                                            ? 3 + (by_default ? 1 : 0)
                       : unit == "count"                                                    ? 1 + (by_default ? 1 : 0)
                       : IsAllocatedBytes(type, unit)                                       ? 3 + (by_default ? 1 : 0)
                                                                                            : 0;
      if (rank <= best) continue;
      best = rank;
      value_ = i;
      scale_ = 1;
      ProfileMeta& meta = builder_.meta();
      meta.unit = WeightUnit::kSamples;
      if (const uint64_t nanoseconds = NanosecondsOf(unit); nanoseconds > 0) {
        // Microseconds stay what they are; other units become nanoseconds.
        meta.unit = nanoseconds == 1'000 ? WeightUnit::kMicroseconds : WeightUnit::kNanoseconds;
        scale_ = nanoseconds == 1'000 ? 1 : nanoseconds;
      }
      meta.view = ViewOf(type, unit);
      if (meta.view == ProfileView::kAllocations) meta.unit = WeightUnit::kBytes;
      // A model counts waits in microseconds.
      const bool waits = meta.view == ProfileView::kOffCpu || meta.view == ProfileView::kWall;
      divisor_ = waits && meta.unit == WeightUnit::kNanoseconds ? 1'000 : 1;
      if (waits) meta.unit = WeightUnit::kMicroseconds;
    }
    if (best > 0) return absl::OkStatus();
    return WithHint(absl::UnimplementedError(absl::StrCat("the values of the profile are ",
                                                          absl::CHexEscape(TextOf(file_.sample_types[0].unit)),
                                                          ", not samples or times")),
                    "clrsampler reads profiles of CPU time, of other times and of allocated bytes");
  }

  void ReadMeta() {
    ProfileMeta& meta = builder_.meta();
    if (const uint64_t scale = NanosecondsOf(TextOf(file_.period_type.unit));
        file_.period > 0 && scale > 0 && static_cast<uint64_t>(file_.period) <= kMaxTotalWeight / scale) {
      meta.period_ns = static_cast<uint64_t>(file_.period) * scale;
    }
    if (file_.time_nanos > 0) meta.start_unix_ns = static_cast<uint64_t>(file_.time_nanos);
    if (file_.duration_nanos > 0) meta.duration_ns = static_cast<uint64_t>(file_.duration_nanos);
    for (const uint64_t comment : file_.comments) {
      absl::string_view text = TextOf(comment).substr(0, kMaxModelStringBytes);
      if (absl::ConsumePrefix(&text, pprof::kViewComment)) {
        meta.view = ProfileViewOf(text).value_or(meta.view);
      } else if (absl::ConsumePrefix(&text, pprof::kHostComment)) {
        meta.host = std::string(text);
      } else if (absl::ConsumePrefix(&text, pprof::kCommandComment)) {
        meta.command = std::string(text);
      } else if (text == pprof::kWholeHostComment) {
        meta.whole_host = true;
      } else if (meta.creator.empty()) {
        meta.creator = std::string(text);
      }
    }
  }

  absl::Status ReadSample(protozero::data_view bytes) {
    location_ids_.clear();
    values_.clear();
    ModelSample sample;
    ModelThread thread;
    TraceLink link;
    ForEachField<pprof::Sample>(bytes, [&](auto& field) {
      // One more than there may be. That is refused below.
      if (field.tag() == pprof::Sample::kLocationId) return TakeNumbers(field, kMaxModelStackFrames + 1, location_ids_);
      if (field.tag() == pprof::Sample::kValue) return TakeNumbers(field, file_.sample_types.size() + 1, values_);
      if (field.tag() != pprof::Sample::kLabel || !IsMessage(field)) return false;
      ReadLabel(field.get_view(), thread, sample, link);
      return true;
    });
    if (values_.size() != file_.sample_types.size()) return NotPprof("a sample has another number of values");
    const uint64_t value = values_[value_];
    if (value > kMaxTotalWeight) {
      return WithHint(absl::InvalidArgumentError("a sample has a negative value: the profile is a difference"),
                      "give the two profiles that it was made of");
    }
    if (value > kMaxTotalWeight / scale_) return absl::OutOfRangeError("a sample's time does not fit into 2^63 ns");
    sample.weight = value * scale_ / divisor_;
    for (size_t i = location_ids_.size(); i-- > 0 && builder_.ok();) {
      const auto found = file_.locations.find(location_ids_[i]);
      if (found == file_.locations.end()) {
        return NotPprof(absl::StrCat("location ", location_ids_[i], " is in none of its tables"));
      }
      PprofLocation& location = found->second;
      if (location.frames_end == 0) RETURN_IF_ERROR(MakeFrames(location));
      const size_t frames = location.frames_end - location.frames_begin;
      if (frames > frame_budget_) return NotPprof("its samples have more inlined functions than any program");
      frame_budget_ -= frames;
      for (uint32_t frame = location.frames_begin; frame < location.frames_end; ++frame) {
        sample.stack = builder_.Node(sample.stack, frames_[frame]);
      }
    }
    sample.thread = builder_.Thread(thread);
    sample.link = builder_.Link(link);
    builder_.Add(sample);
    return absl::OkStatus();
  }

  void ReadLabel(protozero::data_view bytes, ModelThread& thread, ModelSample& sample, TraceLink& link) {
    uint64_t key = 0, text = 0, number = 0;
    ForEachField<pprof::Label>(bytes, [&](auto& field) {
      if (field.tag() == pprof::Label::kKey) return TakeNumber(field, key);
      if (field.tag() == pprof::Label::kStr) return TakeNumber(field, text);
      if (field.tag() == pprof::Label::kNum) return TakeNumber(field, number);
      return false;
    });
    const absl::string_view name = TextOf(key);
    const auto id = [&](uint32_t& out) {
      // Some programs write numbers as texts.
      if (text != 0 && TextOf(text).size() <= kMaxNumberBytes && absl::SimpleAtoi(TextOf(text), &out)) return;
      out = number <= std::numeric_limits<uint32_t>::max() ? static_cast<uint32_t>(number) : 0;
    };
    if (name == pprof::kPidLabel) id(thread.pid);
    if (name == pprof::kTidLabel) id(thread.tid);
    if (name == pprof::kCommLabel) thread.comm = StringOf(text);
    if (name == pprof::kThreadLabel) thread.name = StringOf(text);
    if (name == pprof::kContainerLabel) thread.container_id = StringOf(text);
    if (name == pprof::kTraceLabel) link.SetTrace(TextOf(text));
    if (name == pprof::kSpanLabel) link.SetSpan(TextOf(text));
    if (name == pprof::kStateLabel) sample.state = SampleStateOf(TextOf(text)).value_or(SampleState::kNone);
  }

  // The frames of a location. All of its functions but the outermost are inlined into the next one.
  absl::Status MakeFrames(PprofLocation& location) {
    ModelFrame frame;
    if (location.mapping != 0) {
      const auto mapping = file_.mappings.find(location.mapping);
      if (mapping == file_.mappings.end()) {
        return NotPprof(absl::StrCat("mapping ", location.mapping, " is in none of its tables"));
      }
      frame = InImage(mapping->second.filename);
      frame.build_id = StringOf(mapping->second.build_id);
    }
    // Each sample walks over them.
    if (location.lines_end - location.lines_begin > kMaxPprofLines)
      return NotPprof("a location has too many functions");
    location.frames_begin = static_cast<uint32_t>(frames_.size());
    if (location.lines_begin == location.lines_end) {
      frame.name = builder_.String(absl::StrCat("[no symbol at 0x", absl::Hex(location.address), "]"));
      frames_.push_back(builder_.Frame(frame));
    }
    for (uint32_t at = location.lines_end; at-- > location.lines_begin;) {
      const PprofLine& line = file_.lines[at];
      const auto function = file_.functions.find(line.function);
      if (function == file_.functions.end()) {
        return NotPprof(absl::StrCat("function ", line.function, " is in none of its tables"));
      }
      const PprofFunction& entry = function->second;
      frame.name = StringOf(entry.name != 0 ? entry.name : entry.system_name);
      const StringIndex system_name = StringOf(entry.system_name);
      frame.system_name = system_name == StringOf(entry.name) ? 0 : system_name;
      frame.source_file = StringOf(entry.filename);
      frame.line = line.line;
      frame.column = line.column;
      frames_.push_back(builder_.Frame(frame));
      frame.kind = ModelFrameKind::kInlined;
    }
    location.frames_end = static_cast<uint32_t>(frames_.size());
    return absl::OkStatus();
  }

  // A frame of which no more is known than the file that it is in, whose name is the text `name`.
  const ModelFrame& InImage(uint64_t name) {
    const auto [found, added] = in_image_.try_emplace(name);
    if (added) SetImage(TextOf(name), found->second);
    return found->second;
  }

  // The inverse of MappingName in output/pprof.cc.
  void SetImage(absl::string_view name, ModelFrame& frame) {
    if (absl::StartsWith(name, "[kernel")) frame.kind = ModelFrameKind::kKernel;
    if (name == pprof::kKernelMapping || name.empty()) return;
    if (const size_t close = name.find(']'); name.front() == '[' && close != absl::string_view::npos) {
      if (const std::optional<ModelFrameKind> kind = ModelFrameKindOf(name.substr(1, close - 1))) {
        frame.kind = *kind;
        frame.module = builder_.String(absl::StripLeadingAsciiWhitespace(name.substr(close + 1)));
        return;
      }
    }
    if (frame.kind == ModelFrameKind::kUnknown) frame.kind = ModelFrameKind::kNative;
    const size_t slash = name.rfind('/');
    frame.module = builder_.String(slash == absl::string_view::npos ? name : name.substr(slash + 1));
    if (slash != absl::string_view::npos) frame.module_path = builder_.String(name);
  }

  static constexpr StringIndex kNoString = std::numeric_limits<StringIndex>::max();

  const absl::string_view bytes_;
  PprofFile file_;
  std::vector<StringIndex> strings_;                    // of file_.texts, as far as they were asked for
  absl::flat_hash_map<uint64_t, ModelFrame> in_image_;  // by the same indexes
  ProfileModelBuilder builder_{kReadLimits};
  size_t value_ = 0;      // which of a sample's values
  uint64_t scale_ = 1;    // from the file's unit
  uint64_t divisor_ = 1;  // to ours
  size_t frame_budget_ = std::max(kMinFrameBudget, kMaxFramesPerByte* bytes_.size());
  std::vector<FrameIndex> frames_;
  std::vector<uint64_t> location_ids_, values_;  // of the sample at hand
};

}  // namespace

absl::StatusOr<ProfileModel> ReadPprof(absl::string_view bytes) {
  if (bytes.size() > std::numeric_limits<uint32_t>::max()) return absl::ResourceExhaustedError("a profile of 4 GiB");
  try {  // protozero's way to say that bytes are no protobuf message; nothing of ours throws
    return PprofReader(bytes).Read();
  } catch (const protozero::exception&) {
    return NotPprof("its bytes are no protobuf message");
  }
}

}  // namespace clrsampler
