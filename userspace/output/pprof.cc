#include "output/pprof.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/names/utf8.h"
#include "formats/profile/gzip.h"
#include "formats/profile/pprof_fields.h"
#include "output/mapping_name.h"
#include "output/text_chunk.h"
#include "protozero/pbf_builder.hpp"
#include "status/status.h"

namespace clrsampler {
namespace {

using protozero::pbf_builder;

// The format's own table of texts: those of the model, as far as they are needed, and a few more.
class PprofStrings {
 public:
  PprofStrings() { Add(""); }
  int64_t Add(absl::string_view text) {
    const auto [found, added] = ids_.try_emplace(WellFormedUtf8(text), static_cast<int64_t>(texts_.size()));
    if (added) texts_.push_back(found->first);
    return found->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  absl::flat_hash_map<std::string, int64_t> ids_;
  std::vector<std::string> texts_;
};

// Rows of the model that are one sample here.
struct SampleRow {
  NodeIndex stack;
  ThreadIndex thread;
  SampleState state;
  uint64_t weight;
  LinkIndex link;
  auto key() const { return std::tie(stack, thread, state, link); }
};

std::vector<SampleRow> CountedRows(const SampleColumns& samples) {
  std::vector<SampleRow> rows;
  rows.reserve(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    rows.push_back(
        {samples.stack[i], samples.thread[i], samples.state_of(i), samples.weight_of(i), samples.link_of(i)});
  }
  std::sort(rows.begin(), rows.end(), [](const SampleRow& a, const SampleRow& b) { return a.key() < b.key(); });
  size_t kept = 0;
  for (const SampleRow& row : rows) {
    if (kept > 0 && rows[kept - 1].key() == row.key()) {
      rows[kept - 1].weight += row.weight;
    } else {
      rows[kept++] = row;
    }
  }
  rows.resize(kept);
  return rows;
}

class PprofEncoder {
 public:
  PprofEncoder(const ProfileModel& model, const OutputSink& sink) : model_(model), out_(sink) {}

  absl::Status Encode() {
    // Each sample has a count and, where the period is known, a time.
    counts_time_ = model_.meta.unit == WeightUnit::kSamples && model_.meta.period_ns > 0;
    if (counts_time_ && model_.total_weight > kMaxTotalWeight / model_.meta.period_ns) {
      return absl::OutOfRangeError("the CPU time of all samples is more than 2^63 ns, which pprof can't hold");
    }
    WriteHead();
    RETURN_IF_ERROR(WriteFrames());
    RETURN_IF_ERROR(WriteSamples());
    for (size_t i = 0; i < strings_.texts().size(); ++i) {
      builder_.add_string(pprof::Profile::kStringTable, strings_.texts()[i]);
      RETURN_IF_ERROR(FlushIfFull());
    }
    RETURN_IF_ERROR(Flush());
    return out_.Finish();
  }

 private:
  void WriteValueType(pprof::Profile field, absl::string_view type, absl::string_view unit) {
    message_.clear();
    pbf_builder<pprof::ValueType> value(message_);
    value.add_int64(pprof::ValueType::kType, strings_.Add(type));
    value.add_int64(pprof::ValueType::kUnit, strings_.Add(unit));
    builder_.add_message(field, message_);
  }

  void WriteHead() {
    const ProfileMeta& meta = model_.meta;
    absl::string_view shown = meta.view == ProfileView::kExceptions ? pprof::kExceptions : "samples";
    if (meta.unit == WeightUnit::kSamples) WriteValueType(pprof::Profile::kSampleType, shown, "count");
    if (counts_time_) WriteValueType(pprof::Profile::kSampleType, shown = "cpu", "nanoseconds");
    if (meta.unit != WeightUnit::kSamples) {
      shown = meta.unit == WeightUnit::kBytes           ? "alloc_space"
              : meta.view == ProfileView::kSuspendDelay ? "suspend_delay"
              : meta.view == ProfileView::kContention   ? pprof::kContention
              : meta.view == ProfileView::kOffCpu       ? pprof::kOffCpu
              : meta.view == ProfileView::kWall         ? pprof::kWall
                                                        : "cpu";
      // The format's users expect waits in nanoseconds.
      waits_ = meta.unit == WeightUnit::kMicroseconds &&
               (meta.view == ProfileView::kOffCpu || meta.view == ProfileView::kWall);
      WriteValueType(pprof::Profile::kSampleType, shown, WeightUnitText(waits_ ? WeightUnit::kNanoseconds : meta.unit));
    }
    builder_.add_int64(pprof::Profile::kDefaultSampleType, strings_.Add(shown));
    if (meta.period_ns > 0) {
      WriteValueType(pprof::Profile::kPeriodType, "cpu", "nanoseconds");
      builder_.add_int64(pprof::Profile::kPeriod, static_cast<int64_t>(meta.period_ns));
    }
    if (meta.start_unix_ns > 0) {
      builder_.add_int64(pprof::Profile::kTimeNanos, static_cast<int64_t>(meta.start_unix_ns));
    }
    // The format has no gaps. Rates are by the time that was recorded.
    if (const uint64_t recorded_ns = meta.recorded_ns(); recorded_ns > 0) {
      builder_.add_int64(pprof::Profile::kDurationNanos, static_cast<int64_t>(recorded_ns));
    }
    const auto comment = [&](absl::string_view key, absl::string_view text) {
      if (!text.empty()) builder_.add_int64(pprof::Profile::kComment, strings_.Add(absl::StrCat(key, text)));
    };
    comment("", meta.creator);
    comment(pprof::kViewComment, meta.view == ProfileView::kCpu ? "" : ProfileViewText(meta.view));
    comment(pprof::kHostComment, meta.host);
    comment(pprof::kCommandComment, meta.command);
    comment("", meta.whole_host ? pprof::kWholeHostComment : "");
  }

  // A location for each frame, with its index and one more as its id. A function for each frame without its line: the
  // lines of a method share it, with the id of the first one's location.
  absl::Status WriteFrames() {
    const std::vector<uint64_t> mappings = WriteMappings();
    absl::flat_hash_map<ModelFrame, uint64_t> functions;
    for (FrameIndex i = 0; i < model_.frames.size(); ++i) {
      const ModelFrame method = WithoutLine(model_.frames[i]);
      const uint64_t id = uint64_t{i} + 1;
      const auto [function, added] = functions.try_emplace(method, id);
      if (added) WriteFunction(id, method);
      WriteLocation(id, mappings[i], function->second, model_.frames[i]);
      RETURN_IF_ERROR(FlushIfFull());
    }
    return absl::OkStatus();
  }

  // It has no first line: the smallest one that was sampled lies somewhere within, and differs from profile to profile.
  void WriteFunction(uint64_t id, const ModelFrame& frame) {
    message_.clear();
    pbf_builder<pprof::Function> function(message_);
    function.add_uint64(pprof::Function::kId, id);
    function.add_int64(pprof::Function::kName, strings_.Add(model_.text(frame.name)));
    // Never the same text: pprof would take it for a C++ name to be shortened, and cut `List<int>.Add` to `List.Add`.
    if (frame.system_name != 0 && frame.system_name != frame.name) {
      function.add_int64(pprof::Function::kSystemName, strings_.Add(model_.text(frame.system_name)));
    }
    if (frame.source_file != 0) {
      function.add_int64(pprof::Function::kFilename, strings_.Add(model_.text(frame.source_file)));
    }
    builder_.add_message(pprof::Profile::kFunction, message_);
  }

  void WriteLocation(uint64_t id, uint64_t mapping, uint64_t function, const ModelFrame& frame) {
    line_.clear();
    pbf_builder<pprof::Line> line(line_);
    line.add_uint64(pprof::Line::kFunctionId, function);
    if (frame.line != 0) line.add_int64(pprof::Line::kLine, frame.line);
    if (frame.column != 0) line.add_int64(pprof::Line::kColumn, frame.column);
    message_.clear();
    pbf_builder<pprof::Location> location(message_);
    location.add_uint64(pprof::Location::kId, id);
    if (mapping != 0) location.add_uint64(pprof::Location::kMappingId, mapping);
    location.add_message(pprof::Location::kLine, line_);
    builder_.add_message(pprof::Profile::kLocation, message_);
  }

  // The id of each frame's mapping; 0: it has none. Files come first: pprof shows the first one as what was profiled.
  std::vector<uint64_t> WriteMappings() {
    struct Key {
      bool no_file;
      std::string name;
      StringIndex build_id;
      auto operator<=>(const Key&) const = default;
    };
    struct Entry {
      uint64_t id = 0;
      bool has_lines = false;
    };
    std::map<Key, Entry> entries;
    std::vector<const Entry*> mapping_of;  // by frame
    for (const ModelFrame& frame : model_.frames) {
      std::string name = MappingName(model_, frame);
      const bool no_file = absl::StartsWith(name, "[");
      if (name.empty()) {
        mapping_of.push_back(nullptr);
        continue;
      }
      // pprof takes mappings of one build for one mapping, so a program's managed modules must not have its build id.
      Entry& entry = entries[{no_file, std::move(name), no_file ? 0 : frame.build_id}];
      entry.has_lines |= frame.line != 0 && frame.source_file != 0;
      mapping_of.push_back(&entry);
    }
    uint64_t next = 0;
    for (auto& [key, entry] : entries) {
      WriteMapping(entry.id = ++next, key.name, model_.text(key.build_id), entry.has_lines);
    }
    std::vector<uint64_t> mappings;
    mappings.reserve(mapping_of.size());
    for (const Entry* entry : mapping_of) mappings.push_back(entry == nullptr ? 0 : entry->id);
    return mappings;
  }

  void WriteMapping(uint64_t id, absl::string_view name, absl::string_view build_id, bool has_lines) {
    message_.clear();
    pbf_builder<pprof::Mapping> mapping(message_);
    mapping.add_uint64(pprof::Mapping::kId, id);
    mapping.add_int64(pprof::Mapping::kFilename, strings_.Add(name));
    if (!build_id.empty()) mapping.add_int64(pprof::Mapping::kBuildId, strings_.Add(build_id));
    mapping.add_bool(pprof::Mapping::kHasFunctions, true);  // else tools would look for symbols themselves
    if (has_lines) {
      mapping.add_bool(pprof::Mapping::kHasFilenames, true);
      mapping.add_bool(pprof::Mapping::kHasLineNumbers, true);
    }
    builder_.add_message(pprof::Profile::kMapping, message_);
  }

  void AddLabel(absl::string_view key, absl::string_view text, std::string& out) {
    if (text.empty()) return;
    line_.clear();
    pbf_builder<pprof::Label> label(line_);
    label.add_int64(pprof::Label::kKey, strings_.Add(key));
    label.add_int64(pprof::Label::kStr, strings_.Add(text));
    pbf_builder<pprof::Sample>(out).add_message(pprof::Sample::kLabel, line_);
  }
  void AddLabel(absl::string_view key, uint32_t number, std::string& out) {
    if (number == 0) return;
    line_.clear();
    pbf_builder<pprof::Label> label(line_);
    label.add_int64(pprof::Label::kKey, strings_.Add(key));
    label.add_int64(pprof::Label::kNum, number);
    pbf_builder<pprof::Sample>(out).add_message(pprof::Sample::kLabel, line_);
  }

  absl::Status WriteSamples() {
    // Encoded once each, and not for every sample.
    std::vector<std::string> thread_labels(model_.threads.size()), tier_labels(model_.strings.size());
    for (size_t i = 0; i < model_.threads.size(); ++i) {
      const ModelThread& thread = model_.threads[i];
      AddLabel(pprof::kPidLabel, thread.pid, thread_labels[i]);
      AddLabel(pprof::kTidLabel, thread.tid, thread_labels[i]);
      AddLabel(pprof::kCommLabel, model_.text(thread.comm), thread_labels[i]);
      AddLabel(pprof::kThreadLabel, model_.text(thread.name), thread_labels[i]);
      AddLabel(pprof::kContainerLabel, model_.text(thread.container_id), thread_labels[i]);
    }
    std::string state_labels[kSampleStateCount];
    for (int i = 1; i < kSampleStateCount; ++i) {
      AddLabel(pprof::kStateLabel, SampleStateText(static_cast<SampleState>(i)), state_labels[i]);
    }

    std::vector<uint64_t> locations;
    NodeIndex located = kRootNode;
    for (const SampleRow& row : CountedRows(model_.samples)) {
      if (row.stack != located) {
        locations.clear();
        for (NodeIndex node = row.stack; node != kRootNode; node = model_.nodes[node].parent) {
          locations.push_back(uint64_t{model_.nodes[node].frame} + 1);
        }
        located = row.stack;
      }
      message_.clear();
      pbf_builder<pprof::Sample> sample(message_);
      sample.add_packed_uint64(pprof::Sample::kLocationId, locations.begin(), locations.end());
      const int64_t values[] = {static_cast<int64_t>(row.weight * (waits_ ? 1000 : 1)),
                                static_cast<int64_t>(row.weight * model_.meta.period_ns)};
      sample.add_packed_int64(pprof::Sample::kValue, values, values + (counts_time_ ? 2 : 1));
      message_ += thread_labels[row.thread];
      message_ += state_labels[static_cast<size_t>(row.state)];
      if (row.link != 0) {
        AddLabel(pprof::kTraceLabel, model_.links[row.link].TraceText(), message_);
        AddLabel(pprof::kSpanLabel, model_.links[row.link].SpanText(), message_);
      }
      if (row.stack != kRootNode) {
        const StringIndex tier = model_.frame_of(row.stack).tier;
        if (tier != 0 && tier_labels[tier].empty()) AddLabel(pprof::kTierLabel, model_.text(tier), tier_labels[tier]);
        message_ += tier_labels[tier];
      }
      builder_.add_message(pprof::Profile::kSample, message_);
      RETURN_IF_ERROR(FlushIfFull());
    }
    return absl::OkStatus();
  }

  absl::Status FlushIfFull() { return chunk_.size() < kChunkBytes ? absl::OkStatus() : Flush(); }
  absl::Status Flush() {
    absl::Status written = out_.Write(chunk_);
    chunk_.clear();
    return written;
  }

  const ProfileModel& model_;
  GzipStream out_;
  bool counts_time_ = false;
  bool waits_ = false;  // microseconds that are written as nanoseconds
  PprofStrings strings_;
  std::string chunk_;  // fields of the profile that are not compressed yet
  pbf_builder<pprof::Profile> builder_{chunk_};
  std::string message_, line_;  // what is being encoded, one in the other; kept for their memory
};

}  // namespace

absl::Status PprofWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  return PprofEncoder(model, sink).Encode();
}

}  // namespace clrsampler
