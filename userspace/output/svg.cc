#include "output/svg.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/profile_title.h"
#include "output/svg_text.h"
#include "output/text_chunk.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr double kWidth = 1200, kMargin = 10, kRow = 17, kCharacter = 6.63;  // the last of the font below
constexpr double kHead = 64, kFoot = 26;
constexpr double kMinWidth = 0.4;

struct KindStyle {
  absl::string_view color, text;
  bool dotted = false;  // names have namespaces
};
// By ModelFrameKind; the light colours of output/page/src/palette.js. Black text contrasts with each by 7 at least.
constexpr std::array<KindStyle, kModelFrameKindCount> kStyles = {{{"#d8dadd", "not known", true},
                                                                  {"#f08d5f", "kernel"},
                                                                  {"#86c8ef", "native"},
                                                                  {"#f4ab3d", "JIT", true},
                                                                  {"#f3e06a", "ReadyToRun", true},
                                                                  {"#e9c46f", "NativeAOT", true},
                                                                  {"#dba1c4", "runtime role"},
                                                                  {"#c9ccd1", "mark"},
                                                                  {"#57c79f", "inlined", true},
                                                                  {"#b5c46a", "type", true}}};
constexpr absl::string_view kRootColor = "#e3e5e8", kProcessColor = "#b9c3d6";

struct Box {
  uint32_t parent = 0;
  uint32_t label = 0;  // of Picture::labels
  uint32_t depth = 0;
  uint64_t self = 0, total = 0;
  double x = 0;
};

// The tree to draw: frames that read the same are one; with several processes each is a box above the root.
class Picture {
 public:
  struct Label {
    std::string text;
    absl::string_view color;
    bool dotted = false;
  };

  explicit Picture(const ProfileModel& model) {
    labels_.push_back({"all", kRootColor});
    boxes_.push_back({});
    std::vector<uint32_t> frame_labels;
    for (const ModelFrame& frame : model.frames) {
      const KindStyle& style = kStyles[static_cast<size_t>(frame.kind)];
      frame_labels.push_back(LabelOf(model.text(frame.name), style.color, style.dotted));
    }
    std::vector<uint32_t> thread_labels;
    for (const ModelThread& thread : model.threads) {
      const absl::string_view comm = model.text(thread.comm);
      thread_labels.push_back(LabelOf(thread.pid != 0 ? absl::StrCat(comm, " (", thread.pid, ")") : std::string(comm),
                                      kProcessColor, false));
    }
    AddSamples(model, frame_labels, thread_labels);
    for (size_t i = boxes_.size(); i-- > 1;) {
      boxes_[i].total += boxes_[i].self;
      boxes_[boxes_[i].parent].total += boxes_[i].total;
    }
    boxes_[0].total += boxes_[0].self;
    Place();
  }

  const std::vector<Box>& boxes() const { return boxes_; }  // parents before their children; the first is the root
  const Label& label(const Box& box) const { return labels_[box.label]; }
  uint64_t total() const { return boxes_[0].total; }

 private:
  uint32_t LabelOf(absl::string_view text, absl::string_view color, bool dotted) {
    const auto [found, added] =
        label_ids_.try_emplace(std::pair(std::string(text), color.data()), static_cast<uint32_t>(labels_.size()));
    if (added) labels_.push_back({std::string(text), color, dotted});
    return found->second;
  }

  uint32_t Child(uint32_t parent, uint32_t label) {
    const auto [found, added] =
        box_ids_.try_emplace(uint64_t{parent} << 32 | label, static_cast<uint32_t>(boxes_.size()));
    if (added) boxes_.push_back({.parent = parent, .label = label, .depth = boxes_[parent].depth + 1});
    return found->second;
  }

  void AddSamples(const ProfileModel& model, const std::vector<uint32_t>& frame_labels,
                  const std::vector<uint32_t>& thread_labels) {
    std::vector<uint32_t> rows(model.samples.size());
    for (uint32_t row = 0; row < rows.size(); ++row) rows[row] = row;
    const auto process = [&](uint32_t row) { return thread_labels[model.samples.thread[row]]; };
    std::stable_sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) { return process(a) < process(b); });
    const bool several = !rows.empty() && process(rows.front()) != process(rows.back());

    // Boxes of the model's nodes for the process at hand. The root's box is never in there, so 0 is free.
    std::vector<uint32_t> own(model.nodes.size(), 0), seen, path;
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t row = rows[i];
      if (i > 0 && process(rows[i - 1]) != process(row)) {
        for (const uint32_t node : seen) own[node] = 0;
        seen.clear();
      }
      const uint32_t bottom = several ? Child(0, process(row)) : 0;
      uint32_t node = model.samples.stack[row];
      for (; node != kRootNode && own[node] == 0; node = model.nodes[node].parent) path.push_back(node);
      uint32_t box = node == kRootNode ? bottom : own[node];
      for (; !path.empty(); path.pop_back()) {
        box = own[path.back()] = Child(box, frame_labels[model.nodes[path.back()].frame]);
        seen.push_back(path.back());
      }
      boxes_[box].self += model.samples.weight_of(row);
    }
  }

  // Children side by side from the left edge of their parent, widest first.
  void Place() {
    std::vector<uint32_t> order(boxes_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin() + 1, order.end(), [&](uint32_t a, uint32_t b) {
      const Box &x = boxes_[a], &y = boxes_[b];
      return std::tuple(x.parent, ~x.total, a) < std::tuple(y.parent, ~y.total, b);
    });
    // A parent's index is lower than its children's, so parents are placed before their children are.
    const double scale = total() == 0 ? 0 : (kWidth - 2 * kMargin) / static_cast<double>(total());
    boxes_[0].x = kMargin;
    for (size_t i = 1; i < order.size(); ++i) {
      Box& box = boxes_[order[i]];
      const bool first = i == 1 || boxes_[order[i - 1]].parent != box.parent;
      const Box& left = boxes_[order[i - 1]];
      box.x = first ? boxes_[box.parent].x : left.x + scale * static_cast<double>(left.total);
    }
  }

  std::vector<Label> labels_;
  absl::flat_hash_map<std::pair<std::string, const char*>, uint32_t> label_ids_;
  std::vector<Box> boxes_;
  absl::flat_hash_map<uint64_t, uint32_t> box_ids_;
};

std::string WeightText(uint64_t weight, WeightUnit unit) {
  switch (unit) {
    case WeightUnit::kSamples:
      return absl::StrCat(weight, weight == 1 ? " sample" : " samples");
    case WeightUnit::kMicroseconds:
      return absl::StrFormat("%.3f ms", static_cast<double>(weight) / 1e3);
    case WeightUnit::kNanoseconds:
      return absl::StrFormat("%.3f ms", static_cast<double>(weight) / 1e6);
    case WeightUnit::kBytes:
      return absl::StrFormat("%.3f MB", static_cast<double>(weight) / 1e6);
  }
  return "";
}

// The boxes to draw, all those of at least `limit` in weight and no deeper than the rows there may be.
struct Choice {
  std::vector<const Box*> boxes;
  uint64_t left_out = 0;
  uint32_t rows = 1;
};
Choice Choose(const Picture& picture) {
  const double scale = (kWidth - 2 * kMargin) / std::max(1.0, static_cast<double>(picture.total()));
  std::vector<uint64_t> weights;
  for (const Box& box : picture.boxes()) weights.push_back(box.total);
  uint64_t limit = std::max<uint64_t>(1, static_cast<uint64_t>(kMinWidth / scale));
  if (weights.size() > kMostSvgFrames) {
    const auto last = weights.begin() + kMostSvgFrames;
    std::nth_element(weights.begin(), last, weights.end(), std::greater<>());
    limit = std::max(limit, *last + 1);
  }
  Choice choice;
  for (const Box& box : picture.boxes()) {
    if (&box != &picture.boxes().front() && (box.total < limit || box.depth >= kMostSvgRows)) {
      ++choice.left_out;
      continue;
    }
    choice.boxes.push_back(&box);
    choice.rows = std::max(choice.rows, box.depth + 1);
  }
  return choice;
}

std::string Head(const ProfileModel& model, const Picture& picture, double height) {
  std::string text = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace\" font-size=\"11\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
      kWidth, height, kWidth, height);
  absl::StrAppendFormat(&text, "<text x=\"%.0f\" y=\"22\" font-size=\"15\">%s</text>\n", kMargin,
                        XmlText(ProfileTitle(model)));
  std::string facts = WeightText(picture.total(), model.meta.unit);
  if (model.meta.view != ProfileView::kCpu) absl::StrAppend(&facts, " of ", ProfileViewText(model.meta.view));
  if (const uint64_t recorded_ns = model.meta.recorded_ns(); recorded_ns > 0) {
    absl::StrAppendFormat(&facts, " in %.1f s", static_cast<double>(recorded_ns) / 1e9);
  }
  absl::StrAppendFormat(&text, "<text x=\"%.0f\" y=\"38\" fill=\"#54585e\">%s</text>\n", kMargin, facts);

  std::array<bool, kModelFrameKindCount> used{};
  for (const ModelFrame& frame : model.frames) used[static_cast<size_t>(frame.kind)] = true;
  double x = kMargin;
  for (size_t kind = 0; kind < kStyles.size(); ++kind) {
    if (!used[kind]) continue;
    absl::StrAppendFormat(&text,
                          "<rect x=\"%.0f\" y=\"46\" width=\"11\" height=\"11\" rx=\"2\" fill=\"%s\"/>"
                          "<text x=\"%.0f\" y=\"55\">%s</text>\n",
                          x, kStyles[kind].color, x + 15, kStyles[kind].text);
    x += 15 + kCharacter * static_cast<double>(kStyles[kind].text.size()) + 14;
  }
  return text;
}

}  // namespace

absl::Status SvgWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  const Picture picture(model);
  const Choice choice = Choose(picture);
  const double height = kHead + kRow * choice.rows + kFoot;
  const double scale = (kWidth - 2 * kMargin) / std::max(1.0, static_cast<double>(picture.total()));
  std::string chunk = Head(model, picture, height);
  for (const Box* box : choice.boxes) {
    const Picture::Label& label = picture.label(*box);
    const double y = kHead + kRow * (choice.rows - 1 - box->depth);
    const double width = box->depth == 0 ? kWidth - 2 * kMargin : scale * static_cast<double>(box->total);
    const double share = 100.0 * static_cast<double>(box->total) / std::max(1.0, static_cast<double>(picture.total()));
    absl::StrAppendFormat(&chunk,
                          "<g><title>%s: %s, %.2f %%</title><rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%.0f\" "
                          "fill=\"%s\"/>",
                          XmlText(label.text), WeightText(box->total, model.meta.unit), share, box->x, y,
                          width > 2 ? width - 0.6 : width, kRow - 1, label.color);
    const std::string name =
        ShortName(label.text, label.dotted, static_cast<size_t>(std::max(0.0, width - 6) / kCharacter));
    if (!name.empty()) {
      absl::StrAppendFormat(&chunk, "<text x=\"%.1f\" y=\"%.0f\">%s</text>", box->x + 3, y + kRow - 5, XmlText(name));
    }
    chunk += "</g>\n";
    if (chunk.size() >= kChunkBytes) {
      RETURN_IF_ERROR(sink(chunk));
      chunk.clear();
    }
  }
  if (choice.left_out > 0) {
    absl::StrAppendFormat(
        &chunk,
        "<text x=\"%.0f\" y=\"%.0f\" fill=\"#54585e\">%d frames too narrow or too deep to be seen are "
        "not drawn; an .html output has them all</text>\n",
        kMargin, height - 9, choice.left_out);
  }
  chunk += "</svg>\n";
  return sink(chunk);
}

}  // namespace clrsampler
