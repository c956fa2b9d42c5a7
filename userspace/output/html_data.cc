#include "output/html_data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "output/html_code.h"
#include "output/json_stream.h"
#include "output/profile_title.h"
#include "profile/lane_category.h"

namespace clrsampler {
namespace {

constexpr int kDataVersion = 1;
constexpr size_t kMostWords = 8;  // tiers, or sources, that one frame lists

// "name":[...]; `value` gives the number of an entry.
template <typename Value>
JsonStream& Column(JsonStream& json, absl::string_view name, size_t size, const Value& value) {
  return json.Raw("\"").Raw(name).Raw("\":").Array(size, [&](size_t i) { json.Number(value(i)); });
}

class Strings {
 public:
  Strings() { Add(""); }
  uint32_t Add(absl::string_view text) {
    const auto [found, added] = ids_.try_emplace(std::string(text), static_cast<uint32_t>(texts_.size()));
    if (added) texts_.push_back(found->first);
    return found->second;
  }
  size_t size() const { return texts_.size(); }
  const std::string& at(size_t index) const { return texts_[index]; }

 private:
  absl::flat_hash_map<std::string, uint32_t> ids_;
  std::vector<std::string> texts_;
};

// Different words in the order in which they come: "QuickJitted, OptimizedTier1".
void AddWord(absl::string_view word, std::vector<absl::string_view>& words) {
  if (!word.empty() && words.size() < kMostWords && std::find(words.begin(), words.end(), word) == words.end()) {
    words.push_back(word);
  }
}

struct PageFrame {
  uint32_t name, module;
  ModelFrameKind kind;
  std::vector<absl::string_view> tiers, sources;
};

// A line that frames have. Columns are left out: the page has a row for each line.
struct PageLine {
  uint32_t file;
  uint32_t line;
  LineKind kind;
};

// A node's frame with one of its lines.
struct PageSpot {
  uint32_t frame;
  uint32_t line;  // index of a PageLine and one more; 0: not known
};

// Unlike StackNode: the root is no entry, and as a parent kRoot.
struct PageNode {
  uint32_t parent, spot;
};

struct PageThread {
  uint32_t pid, tid;
  uint32_t comm, name, container;
};

struct PageEvent {
  const ModelEvent* event;  // borrowed from the model
  uint32_t thread;
};

struct Cell {
  uint32_t node, thread;
  uint64_t weight, before;
};

// One or two models in one set of tables.
class Tables {
 public:
  enum class Side { kAfter, kBefore };

  void Add(const ProfileModel& model, Side side, bool compared) {
    std::vector<uint32_t> spots, threads, nodes(model.nodes.size(), kRoot);
    spots.reserve(model.frames.size());
    for (const ModelFrame& frame : model.frames) {
      // A line of another build is another statement.
      spots.push_back(SpotOf(FrameOf(model, frame), compared ? 0 : LineOf(model, frame)));
    }
    threads.reserve(model.threads.size());
    for (const ModelThread& thread : model.threads) threads.push_back(ThreadOf(model, thread, compared));
    for (size_t node = 1; node < model.nodes.size(); ++node) {
      nodes[node] = NodeOf(nodes[model.nodes[node].parent], spots[model.nodes[node].frame]);
    }
    // Two recordings do not have the same code.
    for (const ModelCode& code : model.code) {
      if (!compared) code_frames_.push_back(FrameOf(model, model.frames[code.frame]));
    }
    const SampleColumns& samples = model.samples;
    cell_of_row_.resize(samples.size());
    for (size_t row = 0; row < samples.size(); ++row) {
      cell_of_row_[row] = CellOf(nodes[samples.stack[row]], threads[samples.thread[row]]);
      Cell& cell = cells_[cell_of_row_[row]];
      (side == Side::kAfter ? cell.weight : cell.before) += samples.weight_of(row);
    }
    for (const ModelEvent& event : model.events) {
      if (!compared) events_.push_back({&event, threads[event.thread]});
    }
  }

  // By their nodes and threads.
  void SortCells() {
    std::vector<uint32_t> order(cells_.size()), place(cells_.size());
    std::iota(order.begin(), order.end(), 0);
    // The root is -1, so that it comes first.
    const auto key = [&](uint32_t cell) { return std::pair(cells_[cell].node + 1, cells_[cell].thread); };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    std::vector<Cell> sorted;
    sorted.reserve(cells_.size());
    for (const uint32_t cell : order) {
      place[cell] = static_cast<uint32_t>(sorted.size());
      sorted.push_back(cells_[cell]);
    }
    cells_ = std::move(sorted);
    for (uint32_t& cell : cell_of_row_) cell = place[cell];
  }

  // The cells of the profile that was added last.
  HtmlCells CellsOfRows() && {
    HtmlCells cells{std::move(cell_of_row_), cells_.size(), {}, 0};
    std::vector<uint32_t> kinds(nodes_.size(), 0);  // of the work at each node
    for (size_t node = 0; node < nodes_.size(); ++node) {
      const uint32_t own = LaneOf(spots_[nodes_[node].spot].frame), parent = nodes_[node].parent;
      const uint32_t before = parent == kRoot ? 0 : kinds[parent];
      kinds[node] = own == 0 || (before != 0 && IsWait(static_cast<LaneCategory>(before - 1))) ? before : own;
    }
    absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> lanes;
    for (const Cell& cell : cells_) {
      const std::pair<uint32_t, uint32_t> key(cell.thread, cell.node == kRoot ? 0 : kinds[cell.node]);
      cells.lanes.push_back(lanes.try_emplace(key, static_cast<uint32_t>(lanes.size())).first->second);
    }
    cells.lane_count = lanes.size();
    return cells;
  }

  // Sources are those of `model`.
  void Write(const ProfileModel& model, const ProfileDiff* diff, bool timed, JsonStream& json) const {
    Strings strings = strings_;
    std::vector<uint32_t> tiers, sources, files, urls;
    if (!lines_.empty()) {
      for (const ModelSource& source : model.sources) {
        files.push_back(strings.Add(model.text(source.file)));
        urls.push_back(strings.Add(model.text(source.url)));
      }
    }
    for (const PageFrame& frame : frames_) {
      tiers.push_back(strings.Add(absl::StrJoin(frame.tiers, ", ")));
      sources.push_back(strings.Add(absl::StrJoin(frame.sources, ", ")));
    }
    if (timed) WriteTimes(model, strings, json);
    json.Raw("\"strings\":").Array(strings.size(), [&](size_t i) { json.String(strings.at(i)); });

    json.Raw(",\n\"frames\":{");
    Column(json, "name", frames_.size(), [&](size_t i) { return frames_[i].name; }).Raw(",");
    Column(json, "kind", frames_.size(), [&](size_t i) { return static_cast<uint64_t>(frames_[i].kind); }).Raw(",");
    Column(json, "module", frames_.size(), [&](size_t i) { return frames_[i].module; }).Raw(",");
    Column(json, "tier", frames_.size(), [&](size_t i) { return tiers[i]; }).Raw(",");
    Column(json, "source", frames_.size(), [&](size_t i) { return sources[i]; });
    if (diff != nullptr) WriteNoise(*diff, json);
    if (timed) {
      Column(json.Raw(","), "lane", frames_.size(), [&](size_t i) { return LaneOf(i); });
    }

    json.Raw("},\n\"nodes\":{");
    // Unsigned arithmetic: the root is 2^32 - 1, and i - (2^32 - 1) = i + 1.
    Column(json, "up", nodes_.size(), [&](size_t i) { return static_cast<uint32_t>(i) - nodes_[i].parent; }).Raw(",");
    Column(json, "frame", nodes_.size(), [&](size_t i) { return spots_[nodes_[i].spot].frame; });
    if (!lines_.empty()) {
      Column(json.Raw(","), "line", nodes_.size(), [&](size_t i) { return spots_[nodes_[i].spot].line; });
      json.Raw("},\n\"lines\":{");
      Column(json, "file", lines_.size(), [&](size_t i) { return lines_[i].file; }).Raw(",");
      Column(json, "line", lines_.size(), [&](size_t i) { return lines_[i].line; }).Raw(",");
      Column(json, "kind", lines_.size(), [&](size_t i) { return static_cast<uint64_t>(lines_[i].kind); });
      json.Raw("},\n\"sources\":{");
      Column(json, "file", files.size(), [&](size_t i) { return files[i]; }).Raw(",");
      Column(json, "url", urls.size(), [&](size_t i) { return urls[i]; }).Raw(",\"text\":");
      json.Array(files.size(), [&](size_t i) { json.String(model.sources[i].text); });
    }

    json.Raw("},\n\"threads\":{");
    Column(json, "pid", threads_.size(), [&](size_t i) { return threads_[i].pid; }).Raw(",");
    Column(json, "tid", threads_.size(), [&](size_t i) { return threads_[i].tid; }).Raw(",");
    Column(json, "comm", threads_.size(), [&](size_t i) { return threads_[i].comm; }).Raw(",");
    Column(json, "name", threads_.size(), [&](size_t i) { return threads_[i].name; }).Raw(",");
    Column(json, "container", threads_.size(), [&](size_t i) { return threads_[i].container; });

    json.Raw("},\n\"cells\":{");
    Column(json, "step", cells_.size(), [&](size_t i) {
      return cells_[i].node - (i == 0 ? kRoot : cells_[i - 1].node);
    }).Raw(",");
    Column(json, "thread", cells_.size(), [&](size_t i) { return cells_[i].thread; }).Raw(",");
    Column(json, "weight", cells_.size(), [&](size_t i) { return cells_[i].weight; });
    if (diff != nullptr) Column(json.Raw(","), "before", cells_.size(), [&](size_t i) { return cells_[i].before; });
    json.Raw("}");
    if (!code_frames_.empty()) WriteHtmlCode(model, code_frames_, json);
  }

 private:
  static constexpr uint32_t kRoot = UINT32_MAX;
  static constexpr double kNeverMarked = 1e12;

  // The dispersion of each frame's counts is that of its method. A method that has moved gets such a large one that
  // nothing is marked. The page judges stacks and methods by it, and knows nothing of inlining.
  void WriteNoise(const ProfileDiff& diff, JsonStream& json) const {
    // Methods are told apart as in the comparison: by name, and the kernel's from all others.
    absl::flat_hash_map<std::pair<absl::string_view, bool>, const MethodChange*> methods;
    for (const MethodChange& method : diff.methods) {
      methods[{method.name, method.kind == ModelFrameKind::kKernel}] = &method;
    }
    std::vector<bool> has_moved_stacks(diff.methods.size(), false);
    for (const StackChange& stack : diff.stacks) {
      if (stack.total.moved && !stack.process) has_moved_stacks[stack.name] = true;
    }
    const auto noise = [&](const MethodChange& method, WeightChange MethodChange::*change) {
      const WeightChange& weight = method.*change;
      const bool stacks = change == &MethodChange::total && !weight.significant &&
                          has_moved_stacks[static_cast<size_t>(&method - diff.methods.data())];
      return weight.moved || stacks ? kNeverMarked : weight.dispersion;
    };
    const auto column = [&](absl::string_view name, WeightChange MethodChange::*change) {
      json.Raw(",\"").Raw(name).Raw("\":").Array(frames_.size(), [&](size_t i) {
        const auto found =
            methods.find(std::pair(strings_.at(frames_[i].name), frames_[i].kind == ModelFrameKind::kKernel));
        json.Raw(absl::StrFormat("%.4g", found == methods.end() ? 1 : noise(*found->second, change)));
      });
    };
    column("noise_self", &MethodChange::self);
    column("noise_total", &MethodChange::total);
  }

  // A LaneCategory and one more; 0: the frame is what its caller is.
  uint32_t LaneOf(size_t frame) const {
    const std::optional<LaneCategory> lane = LaneCategoryOf(frames_[frame].kind, strings_.at(frames_[frame].name));
    return lane ? static_cast<uint32_t>(*lane) + 1 : 0;
  }

  // Adds the texts of events to `strings`. Methods that were compiled are left out: they would be most of the page.
  void WriteTimes(const ProfileModel& model, Strings& strings, JsonStream& json) const {
    std::vector<uint32_t> names, details;
    for (const PageEvent& event : events_) {
      const bool named = event.event->kind != ModelEventKind::kCompilation;
      names.push_back(named ? strings.Add(model.text(event.event->name)) : 0);
      details.push_back(named ? strings.Add(model.text(event.event->detail)) : 0);
    }
    uint64_t untimed = 0;
    for (size_t row = 0; row < model.samples.size(); ++row) {
      if (model.samples.time_of(row) == kNoTime) untimed += model.samples.weight_of(row);
    }
    json.Raw("\"times\":{\"untimed\":").Number(untimed).Raw(",\"lanes\":");
    json.Array(kLaneCategoryCount, [&](size_t i) { json.String(LaneCategoryText(static_cast<LaneCategory>(i))); });
    json.Raw(",\n\"events\":{");
    const size_t size = events_.size();
    Column(json, "kind", size, [&](size_t i) { return static_cast<uint64_t>(events_[i].event->kind); }).Raw(",");
    Column(json, "time_us", size, [&](size_t i) {
      return events_[i].event->time_ns / 1000 - (i == 0 ? 0 : events_[i - 1].event->time_ns / 1000);
    }).Raw(",");
    Column(json, "duration_us", size, [&](size_t i) { return (events_[i].event->duration_ns + 500) / 1000; }).Raw(",");
    Column(json, "thread", size, [&](size_t i) { return events_[i].thread; }).Raw(",");
    Column(json, "name", size, [&](size_t i) { return names[i]; }).Raw(",");
    Column(json, "detail", size, [&](size_t i) { return details[i]; }).Raw("}},\n");
  }

  uint32_t CellOf(uint32_t node, uint32_t thread) {
    const auto [found, added] =
        cell_ids_.try_emplace(uint64_t{node} << 32 | thread, static_cast<uint32_t>(cells_.size()));
    if (added) cells_.push_back({node, thread, 0, 0});
    return found->second;
  }

  uint32_t FrameOf(const ProfileModel& model, const ModelFrame& frame) {
    const uint32_t name = strings_.Add(model.text(frame.name)), module = strings_.Add(model.text(frame.module));
    const auto [found, added] =
        frame_ids_.try_emplace(std::tuple(name, module, frame.kind), static_cast<uint32_t>(frames_.size()));
    if (added) frames_.push_back({name, module, frame.kind, {}, {}});
    AddWord(model.text(frame.tier), frames_[found->second].tiers);
    AddWord(model.text(frame.source), frames_[found->second].sources);
    return found->second;
  }

  uint32_t ThreadOf(const ProfileModel& model, const ModelThread& thread, bool compared) {
    PageThread entry{thread.pid, thread.tid, strings_.Add(model.text(thread.comm)),
                     strings_.Add(model.text(thread.name)), strings_.Add(model.text(thread.container_id))};
    if (compared) entry.pid = entry.tid = entry.container = 0;  // of two runs these are never the same
    const auto [found, added] =
        thread_ids_.try_emplace(std::tuple(entry.pid, entry.tid, entry.comm, entry.name, entry.container),
                                static_cast<uint32_t>(threads_.size()));
    if (added) threads_.push_back(entry);
    return found->second;
  }

  // Index of a PageLine and one more; 0: not known.
  uint32_t LineOf(const ProfileModel& model, const ModelFrame& frame) {
    if (frame.line == 0) return 0;
    const PageLine line = {strings_.Add(model.text(frame.source_file)), frame.line, frame.line_kind};
    const auto [found, added] =
        line_ids_.try_emplace(std::tuple(line.file, line.line, line.kind), static_cast<uint32_t>(lines_.size() + 1));
    if (added) lines_.push_back(line);
    return found->second;
  }

  uint32_t SpotOf(uint32_t frame, uint32_t line) {
    const auto [found, added] =
        spot_ids_.try_emplace(uint64_t{frame} << 32 | line, static_cast<uint32_t>(spots_.size()));
    if (added) spots_.push_back({frame, line});
    return found->second;
  }

  uint32_t NodeOf(uint32_t parent, uint32_t spot) {
    const auto [found, added] =
        node_ids_.try_emplace(uint64_t{parent} << 32 | spot, static_cast<uint32_t>(nodes_.size()));
    if (added) nodes_.push_back({parent, spot});
    return found->second;
  }

  Strings strings_;
  std::vector<PageFrame> frames_;
  absl::flat_hash_map<std::tuple<uint32_t, uint32_t, ModelFrameKind>, uint32_t> frame_ids_;
  std::vector<PageLine> lines_;
  absl::flat_hash_map<std::tuple<uint32_t, uint32_t, LineKind>, uint32_t> line_ids_;
  std::vector<PageSpot> spots_;
  absl::flat_hash_map<uint64_t, uint32_t> spot_ids_;
  std::vector<PageNode> nodes_;
  absl::flat_hash_map<uint64_t, uint32_t> node_ids_;
  std::vector<PageThread> threads_;
  absl::flat_hash_map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>, uint32_t> thread_ids_;
  std::vector<Cell> cells_;
  absl::flat_hash_map<uint64_t, uint32_t> cell_ids_;  // until they are sorted
  std::vector<uint32_t> cell_of_row_;                 // of the profile that was added last
  std::vector<PageEvent> events_;
  std::vector<uint32_t> code_frames_;  // of each body of machine code
};

// The smallest change that counts. The page computes changes anew from rounded noise: hence the margin.
class Critical {
 public:
  void Add(const WeightChange& change) {
    if (change.significant) errors_ = std::min(errors_, change.errors);
  }
  nlohmann::ordered_json Json() const {
    return std::isinf(errors_) ? nlohmann::ordered_json() : nlohmann::ordered_json(errors_ * 0.9999);
  }

 private:
  double errors_ = std::numeric_limits<double>::infinity();
};

void WriteAbout(const ProfileModel& model, const HtmlComparison* comparison, JsonStream& json) {
  const ProfileMeta& meta = model.meta;
  const std::string title = comparison == nullptr
                                ? ProfileTitle(model)
                                : absl::StrCat(ProfileTitle(comparison->before), " \u2192 ", ProfileTitle(model));
  const nlohmann::ordered_json about = {{"title", title},
                                        {"view", std::string(ProfileViewText(meta.view))},
                                        {"unit", std::string(WeightUnitText(meta.unit))},
                                        {"period_ns", meta.period_ns},
                                        {"start_unix_ns", meta.start_unix_ns},
                                        {"duration_ns", meta.duration_ns},
                                        {"recorded_ns", meta.recorded_ns()},
                                        {"host", meta.host},
                                        {"command", meta.command},
                                        {"creator", meta.creator}};
  json.Raw("\"about\":").Value(about).Raw(",\n");
  // It is written as text. Whatever a file says in its account, it can't end ours early.
  if (!meta.account_json.empty()) json.Raw("\"account\":").String(meta.account_json).Raw(",\n");
  if (comparison == nullptr) return;
  const std::string& before = comparison->before.meta.account_json;
  if (!before.empty()) json.Raw("\"account_before\":").String(before).Raw(",\n");
  const ProfileDiff& diff = comparison->diff;
  Critical self, total, stack;
  for (const MethodChange& method : diff.methods) {
    self.Add(method.self);
    total.Add(method.total);
  }
  for (const StackChange& change : diff.stacks) stack.Add(change.total);
  const nlohmann::ordered_json rule = {
      {"scale", diff.factor},
      {"all", diff.basis == DiffBasis::kShare ? diff.total_before + diff.total_after : 0},
      {"self", self.Json()},
      {"total", total.Json()},
      {"stack", stack.Json()},
      {"tested", diff.tested},
      {"scatter_unknown", diff.scatter_unknown}};
  json.Raw("\"diff\":").Value(rule).Raw(",\n");
}

}  // namespace

absl::Status WriteHtmlData(const ProfileModel& model, const HtmlComparison* comparison, const OutputSink& sink,
                           HtmlCells* cells) {
  const bool compared = comparison != nullptr;
  Tables tables;
  tables.Add(model, Tables::Side::kAfter, compared);
  if (compared) tables.Add(comparison->before, Tables::Side::kBefore, compared);
  tables.SortCells();
  const bool timed = cells != nullptr && !compared && !model.samples.time_ns.empty();

  JsonStream json(sink);
  json.Raw("{\"version\":").Number(kDataVersion).Raw(",\n");
  WriteAbout(model, comparison, json);
  tables.Write(model, compared ? &comparison->diff : nullptr, timed, json);
  json.Raw("}\n");
  if (timed) *cells = std::move(tables).CellsOfRows();
  return json.Finish();
}

}  // namespace clrsampler
