#include "output/firefox_profile.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/profile/gzip.h"
#include "output/firefox_markers.h"
#include "output/json_stream.h"
#include "output/thread_lanes.h"
#include "profile/lane_category.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int kProcessedVersion = 60;
constexpr int kGeckoVersion = 31;  // of the time of kProcessedVersion; viewers ask for it, and do not use it
constexpr int kLibraryResource = 1;
constexpr uint32_t kInstantMarker = 0, kIntervalMarker = 1;

// The viewer's own words for colours. Idle lanes are drawn as if nothing was there.
absl::string_view ColorOf(LaneCategory category) {
  switch (category) {
    case LaneCategory::kOther:
      return "grey";
    case LaneCategory::kManaged:
      return "green";
    case LaneCategory::kPrecompiled:
      return "lightblue";
    case LaneCategory::kNative:
      return "blue";
    case LaneCategory::kKernel:
      return "orange";
    case LaneCategory::kCollection:
      return "red";
    case LaneCategory::kCompilation:
      return "purple";
    case LaneCategory::kWaiting:
      return "yellow";
    case LaneCategory::kIdle:
      return "transparent";
  }
  return "grey";
}

std::string Milliseconds(uint64_t ns) { return absl::StrFormat("%d.%06d", ns / 1'000'000, ns % 1'000'000); }

absl::string_view WeightTypeOf(WeightUnit unit) {
  switch (unit) {
    case WeightUnit::kSamples:
      return "samples";
    case WeightUnit::kMicroseconds:
    case WeightUnit::kNanoseconds:
      return "tracing-ms";
    case WeightUnit::kBytes:
      return "bytes";
  }
  return "samples";
}

std::string WeightText(WeightUnit unit, uint64_t weight) {
  if (unit == WeightUnit::kMicroseconds) return absl::StrFormat("%d.%03d", weight / 1000, weight % 1000);
  if (unit == WeightUnit::kNanoseconds) return Milliseconds(weight);
  return absl::StrCat(weight);
}

// Entries of a table that were met, in that order, and the number of each.
template <typename Key>
class Numbers {
 public:
  uint32_t Of(const Key& key) {
    const auto [found, added] = numbers_.try_emplace(key, static_cast<uint32_t>(keys_.size()));
    if (added) keys_.push_back(key);
    return found->second;
  }
  const std::vector<Key>& keys() const { return keys_; }

 private:
  absl::flat_hash_map<Key, uint32_t> numbers_;
  std::vector<Key> keys_;
};

using Image = std::tuple<StringIndex, StringIndex, StringIndex>;  // name, path, build id

class FirefoxEncoder {
 public:
  FirefoxEncoder(const ProfileModel& model, const OutputSink& sink) : model_(model), out_(sink), lanes_(model) {
    for (const ModelFrame& frame : model.frames) function_of_.push_back(functions_.Of(WithoutLine(frame)));
    for (const ModelFrame& function : functions_.keys()) {
      image_of_.push_back(function.module == 0 ? -1
                                               : static_cast<int64_t>(images_.Of(
                                                     {function.module, function.module_path, function.build_id})));
      source_of_.push_back(function.source_file == 0 ? -1 : static_cast<int64_t>(sources_.Of(function.source_file)));
    }
    FindWakers();
  }

  absl::Status Encode() {
    out_.Raw("{\"meta\": ").Value(Meta()).Raw(",\n\"libs\": ");
    WriteImages();
    out_.Raw(",\n\"pages\": [], \"counters\": [],\n\"shared\": {\"stringArray\": ");
    out_.Array(model_.strings.size() + MarkerNames().size(), [&](size_t i) {
      const bool own = i >= model_.strings.size();
      out_.String(own ? MarkerNames()[i - model_.strings.size()] : model_.text(static_cast<StringIndex>(i)));
    });
    WriteSources();
    WriteStacks();
    WriteFrames();
    WriteFunctions();
    out_.Raw("},\n\"threads\": [");
    WriteThreads();
    out_.Raw("]}\n");
    return out_.Finish();
  }

 private:
  // Behind a wait stand the frames of its waker. They get rows of their own behind all others, without a category: so
  // the viewer gives them that of the frame before them, which is the wait.
  void FindWakers() {
    for (const ModelFrame& frame : model_.frames) {
      category_of_.push_back(LaneCategoryOf(frame.kind, model_.text(frame.name)));
    }
    std::vector<bool> waits(model_.nodes.size(), false);
    row_of_.resize(model_.nodes.size(), 0);
    for (size_t i = 1; i < model_.nodes.size(); ++i) {
      const auto [parent, frame] = model_.nodes[i];
      const auto row = static_cast<uint32_t>(model_.frames.size());
      row_of_[i] = waits[parent] ? row + wakers_.Of(frame) : frame;
      waits[i] = waits[parent] || (category_of_[frame] && IsWait(*category_of_[frame]));
    }
  }

  nlohmann::ordered_json Meta() const {
    const ProfileMeta& meta = model_.meta;
    nlohmann::ordered_json categories = nlohmann::ordered_json::array();
    for (int i = 0; i < kLaneCategoryCount; ++i) {
      const auto category = static_cast<LaneCategory>(i);
      categories.push_back({{"name", std::string(LaneCategoryText(category))},
                            {"color", std::string(ColorOf(category))},
                            {"subcategories", {"Other"}}});
    }
    nlohmann::ordered_json json = {{"interval", meta.period_ns > 0 ? static_cast<double>(meta.period_ns) / 1e6 : 1.0},
                                   {"startTime", static_cast<double>(meta.start_unix_ns) / 1e6},
                                   {"profilingStartTime", 0},
                                   {"processType", 0},
                                   {"product", meta.command.empty() ? std::string("clrsampler") : meta.command},
                                   {"importedFrom", meta.creator},
                                   {"stackwalk", 1},
                                   {"debug", false},
                                   {"version", kGeckoVersion},
                                   {"preprocessedProfileVersion", kProcessedVersion},
                                   {"platform", "Linux"},
                                   {"symbolicated", true},
                                   {"symbolicationNotSupported", true},
                                   {"usesOnlyOneStackType", true},
                                   {"sourceCodeIsNotOnSearchfox", true},
                                   {"categories", std::move(categories)},
                                   {"markerSchema", MarkerSchema()},
                                   {"sampleUnits", {{"time", "ms"}, {"eventDelay", "ms"}, {"threadCPUDelta", "ns"}}}};
    if (meta.start_monotonic_ns > 0) json["startTimeAsClockMonotonicNanosecondsSinceBoot"] = meta.start_monotonic_ns;
    if (meta.duration_ns > 0) json["profilingEndTime"] = static_cast<double>(meta.duration_ns) / 1e6;
    nlohmann::ordered_json entries = nlohmann::ordered_json::array();
    const auto entry = [&](absl::string_view label, absl::string_view value) {
      if (value.empty()) return;
      entries.push_back({{"label", std::string(label)}, {"format", "string"}, {"value", std::string(value)}});
    };
    entry("Host", meta.host);
    entry("Counted", absl::StrCat(ProfileViewText(meta.view), ", in ", WeightUnitText(meta.unit)));
    json["extra"] = {{{"label", "Recording"}, {"entries", std::move(entries)}}};
    return json;
  }

  static nlohmann::ordered_json MarkerSchema() {
    nlohmann::ordered_json schema = nlohmann::ordered_json::array();
    for (const absl::string_view type : MarkerTypes()) {
      schema.push_back({{"name", std::string(type)},
                        {"tooltipLabel", "{marker.name}: {marker.data.what}"},
                        {"tableLabel", "{marker.data.what} {marker.data.detail}"},
                        {"chartLabel", "{marker.data.what}"},
                        {"display", {"marker-chart", "marker-table", "timeline-overview"}},
                        {"fields",
                         {{{"key", "what"}, {"label", "What"}, {"format", "string"}},
                          {{"key", "detail"}, {"label", "Details"}, {"format", "string"}}}}});
    }
    return schema;
  }

  template <typename Value>
  void Column(absl::string_view before, absl::string_view name, size_t size, Value value) {
    out_.Raw(before).Raw("\"").Raw(name).Raw("\": ").Array(size, [&](size_t i) { value(i); });
  }
  template <typename Value>
  void Numbered(absl::string_view before, absl::string_view name, size_t size, Value value) {
    Column(before, name, size, [&](size_t i) { out_.Number(value(i)); });
  }
  void Constant(absl::string_view name, size_t size, absl::string_view text) {
    Column(", ", name, size, [&](size_t) { out_.Raw(text); });
  }
  // `value` < 0: there is none.
  void NumberOr(absl::string_view none, int64_t value) {
    if (value < 0) {
      out_.Raw(none);
    } else {
      out_.Number(static_cast<uint64_t>(value));
    }
  }

  void WriteImages() {
    out_.Array(images_.keys().size(), [&](size_t i) {
      const auto& [name, path, build_id] = images_.keys()[i];
      const std::string shown(model_.text(name)), file(model_.text(path == 0 ? name : path));
      nlohmann::ordered_json image = {{"arch", ""},        {"name", shown},    {"path", file},     {"debugName", shown},
                                      {"debugPath", file}, {"breakpadId", ""}, {"codeId", nullptr}};
      if (build_id != 0) image["codeId"] = std::string(model_.text(build_id));
      out_.Value(image);
    });
  }

  void WriteSources() {
    const size_t size = sources_.keys().size();
    out_.Raw(",\n\"sources\": {\"length\": ").Number(size);
    Constant("uuid", size, "null");
    Numbered(", ", "filename", size, [&](size_t i) { return sources_.keys()[i]; });
    out_.Raw("}");
  }

  // Node 0 of the model is no stack here, so each one has the number before.
  void WriteStacks() {
    const size_t size = model_.nodes.size() - 1;
    out_.Raw(",\n\"stackTable\": {\"length\": ").Number(size);
    Numbered(",\n  ", "frame", size, [&](size_t i) { return row_of_[i + 1]; });
    Column(",\n  ", "prefix", size, [&](size_t i) { NumberOr("null", int64_t{model_.nodes[i + 1].parent} - 1); });
    out_.Raw("}");
  }

  void WriteFrames() {
    const size_t frames = model_.frames.size(), size = frames + wakers_.keys().size();
    const auto frame_at = [&](size_t i) { return i < frames ? i : wakers_.keys()[i - frames]; };
    const auto category = [&](size_t i) { return i < frames ? category_of_[i] : std::nullopt; };
    out_.Raw(",\n\"frameTable\": {\"length\": ").Number(size);
    Constant("address", size, "-1");
    Constant("inlineDepth", size, "0");
    Column(",\n  ", "category", size, [&](size_t i) {
      const auto of = category(i);
      NumberOr("null", of ? static_cast<int64_t>(*of) : -1);
    });
    Column(",\n  ", "subcategory", size, [&](size_t i) { out_.Raw(category(i) ? "0" : "null"); });
    Numbered(",\n  ", "func", size, [&](size_t i) { return function_of_[frame_at(i)]; });
    Constant("nativeSymbol", size, "null");
    Constant("innerWindowID", size, "null");
    const auto known = [](uint32_t number) { return number == 0 ? int64_t{-1} : int64_t{number}; };
    Column(",\n  ", "line", size, [&](size_t i) { NumberOr("null", known(model_.frames[frame_at(i)].line)); });
    Column(",\n  ", "column", size, [&](size_t i) { NumberOr("null", known(model_.frames[frame_at(i)].column)); });
    out_.Raw("}");
  }

  void WriteFunctions() {
    const size_t size = functions_.keys().size(), images = images_.keys().size();
    out_.Raw(",\n\"funcTable\": {\"length\": ").Number(size);
    Numbered(",\n  ", "name", size, [&](size_t i) { return functions_.keys()[i].name; });
    Constant("isJS", size, "false");
    Constant("relevantForJS", size, "false");
    Column(",\n  ", "resource", size, [&](size_t i) { NumberOr("-1", image_of_[i]); });
    Column(",\n  ", "source", size, [&](size_t i) { NumberOr("null", source_of_[i]); });
    Constant("lineNumber", size, "null");
    Constant("columnNumber", size, "null");
    out_.Raw("},\n\"resourceTable\": {\"length\": ").Number(images);
    Numbered(", ", "lib", images, [](size_t i) { return i; });
    Numbered(", ", "name", images, [&](size_t i) { return std::get<0>(images_.keys()[i]); });
    Constant("host", images, "null");
    Constant("type", images, absl::StrCat(kLibraryResource));
    out_.Raw(
        "},\n\"nativeSymbols\": {\"length\": 0, \"libIndex\": [], \"address\": [], \"name\": [], \"functionSize\": "
        "[]}");
  }

  void WriteThreads() {
    for (size_t i = 0; i < lanes_.lanes().size(); ++i) {
      out_.Raw(i == 0 ? "\n" : ",\n");
      WriteThread(lanes_.lanes()[i]);
    }
  }

  void WriteThread(const ThreadLane& lane) {
    const ModelThread& thread = model_.threads[lane.thread];
    const absl::string_view name = model_.text(thread.name == 0 ? thread.comm : thread.name);
    out_.Raw("{\"processType\": \"default\", \"processStartupTime\": 0, \"processShutdownTime\": null");
    out_.Raw(", \"registerTime\": 0, \"unregisterTime\": null, \"pausedRanges\": [], \"name\": ").String(name);
    // The viewer shows one main thread of a pid, and no other.
    out_.Raw(", \"isMainThread\": ").Raw(lane.leads ? "true" : "false");
    out_.Raw(", \"processName\": ").String(ProcessLabel(model_, thread));
    out_.Raw(", \"pid\": ").String(PidOf(thread)).Raw(", \"tid\": ").Number(thread.tid);
    out_.Raw(", \"showMarkersInTimeline\": true");
    WriteSamples(lane.rows);
    WriteMarkers(MarkersOfLane(model_, lanes_, lane));
  }

  // The viewer takes lanes with one pid for one process, and any text for a pid.
  std::string PidOf(const ModelThread& thread) {
    if (thread.pid != 0) return absl::StrCat(thread.pid);
    return absl::StrCat("unknown-", nameless_.Of(thread.comm) + 1);
  }

  void WriteSamples(const std::vector<uint32_t>& rows) {
    const SampleColumns& samples = model_.samples;
    const ProfileMeta& meta = model_.meta;
    out_.Raw(",\n\"samples\": {\"length\": ").Number(rows.size()).Raw(", \"weightType\": \"");
    out_.Raw(WeightTypeOf(meta.unit)).Raw("\"");
    Column(",\n  ", "time", rows.size(), [&](size_t i) { out_.Raw(Milliseconds(lanes_.TimeOf(rows[i]))); });
    Column(",\n  ", "stack", rows.size(), [&](size_t i) { NumberOr("null", int64_t{samples.stack[rows[i]]} - 1); });
    Column(",\n  ", "weight", rows.size(),
           [&](size_t i) { out_.Raw(WeightText(meta.unit, samples.weight_of(rows[i]))); });
    // The CPU use of a thread: it had the CPU for as long as its samples stand for, and not between them.
    if (meta.unit == WeightUnit::kSamples && meta.period_ns > 0) {
      Numbered(",\n  ", "threadCPUDelta", rows.size(),
               [&](size_t i) { return samples.weight_of(rows[i]) * meta.period_ns; });
    }
    out_.Raw("}");
  }

  void WriteMarkers(const std::vector<FirefoxMarker>& markers) {
    const size_t size = markers.size();
    out_.Raw(",\n\"markers\": {\"length\": ").Number(size);
    Column(",\n  ", "data", size, [&](size_t i) {
      out_.Raw("{\"type\": ").String(TypeOf(markers[i]));
      out_.Raw(", \"what\": ").String(model_.text(markers[i].what));
      out_.Raw(", \"detail\": ").String(DetailOf(model_, markers[i])).Raw("}");
    });
    // The names stand behind the model's strings.
    Numbered(",\n  ", "name", size, [&](size_t i) { return model_.strings.size() + size_t{markers[i].name}; });
    Column(",\n  ", "startTime", size, [&](size_t i) { out_.Raw(Milliseconds(markers[i].begin_ns)); });
    Column(",\n  ", "endTime", size, [&](size_t i) {
      const uint64_t duration = markers[i].duration_ns;
      out_.Raw(duration == 0 ? "null" : Milliseconds(markers[i].begin_ns + duration));
    });
    Numbered(",\n  ", "phase", size,
             [&](size_t i) { return markers[i].duration_ns == 0 ? kInstantMarker : kIntervalMarker; });
    Numbered(",\n  ", "category", size, [&](size_t i) { return static_cast<uint32_t>(markers[i].category); });
    out_.Raw("}}");
  }

  const ProfileModel& model_;
  JsonStream out_;
  const ThreadLanes lanes_;
  Numbers<ModelFrame> functions_;
  Numbers<Image> images_;
  Numbers<StringIndex> sources_;
  Numbers<StringIndex> nameless_;                         // processes without a pid, by name
  std::vector<std::optional<LaneCategory>> category_of_;  // by frame
  Numbers<FrameIndex> wakers_;
  std::vector<uint32_t> row_of_;               // of the table of frames, by node
  std::vector<uint32_t> function_of_;          // by frame
  std::vector<int64_t> image_of_, source_of_;  // by function; -1: none
};

}  // namespace

absl::Status FirefoxProfileWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  GzipStream gzip(sink);
  const OutputSink compressed = [&](absl::string_view text) { return gzip.Write(text); };
  RETURN_IF_ERROR(FirefoxEncoder(model, compressed).Encode());
  return gzip.Finish();
}

}  // namespace clrsampler
