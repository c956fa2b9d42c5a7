#include "output/speedscope.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "output/json_stream.h"

namespace clrsampler {
namespace {

absl::string_view UnitText(WeightUnit unit) {
  return unit == WeightUnit::kSamples ? "none" : WeightUnitText(unit);  // its words are the same
}

// Place of each node where a tree is walked from callers to what they call, in the order of first samples.
std::vector<uint32_t> WalkOrder(const std::vector<StackNode>& nodes) {
  std::vector<uint32_t> sizes(nodes.size(), 1);
  for (size_t i = nodes.size(); i-- > 1;) sizes[nodes[i].parent] += sizes[i];
  std::vector<uint32_t> places(nodes.size(), 0), next(nodes.size(), 1);
  for (size_t i = 1; i < nodes.size(); ++i) {
    const NodeIndex parent = nodes[i].parent;
    places[i] = next[parent];
    next[parent] += sizes[i];
    next[i] = places[i] + 1;
  }
  return places;
}

struct Row {
  uint32_t process;
  uint32_t place;
  NodeIndex stack;
  uint64_t weight;
};

std::vector<Row> CountedRows(const ProfileModel& model, const std::vector<uint32_t>& processes) {
  const std::vector<uint32_t> places = WalkOrder(model.nodes);
  std::vector<Row> rows;
  rows.reserve(model.samples.size());
  for (size_t i = 0; i < model.samples.size(); ++i) {
    const NodeIndex stack = model.samples.stack[i];
    rows.push_back({processes[model.samples.thread[i]], places[stack], stack, model.samples.weight_of(i)});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.process != b.process ? a.process < b.process : a.place < b.place;
  });
  size_t kept = 0;
  for (const Row& row : rows) {
    if (kept > 0 && rows[kept - 1].process == row.process && rows[kept - 1].stack == row.stack) {
      rows[kept - 1].weight += row.weight;
    } else {
      rows[kept++] = row;
    }
  }
  rows.resize(kept);
  return rows;
}

}  // namespace

absl::Status SpeedscopeWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  std::map<std::string, uint32_t> labels;
  std::vector<uint32_t> processes;  // by thread: those of one label are one
  for (const ModelThread& thread : model.threads) {
    processes.push_back(labels.try_emplace(ProcessLabel(model, thread), labels.size()).first->second);
  }
  std::vector<std::string> names(labels.size());
  for (const auto& [label, process] : labels) names[process] = label;

  JsonStream out(sink);
  out.Raw("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\": ")
      .String(model.meta.creator)
      .Raw(",\n\"shared\": {\"frames\": ");
  out.Array(model.frames.size(), [&](size_t i) {
    const ModelFrame& frame = model.frames[i];
    out.Raw("\n{\"name\": ").String(model.text(frame.name));
    // A line is one of a file of source text.
    const StringIndex file = frame.source_file != 0 || frame.line != 0 ? frame.source_file : frame.module;
    if (file != 0) out.Raw(", \"file\": ").String(model.text(file));
    if (frame.line != 0) out.Raw(", \"line\": ").Number(frame.line);
    if (frame.column != 0) out.Raw(", \"col\": ").Number(frame.column);
    out.Raw("}");
  });
  out.Raw("},\n\"profiles\": [");

  const std::vector<Row> rows = CountedRows(model, processes);
  std::vector<FrameIndex> frames;
  for (size_t begin = 0, end; begin < rows.size(); begin = end) {
    uint64_t total = 0;
    for (end = begin; end < rows.size() && rows[end].process == rows[begin].process; ++end) total += rows[end].weight;
    const std::span<const Row> own = std::span(rows).subspan(begin, end - begin);
    if (begin > 0) out.Raw(",");
    out.Raw("\n{\"type\": \"sampled\", \"name\": ").String(names[rows[begin].process]);
    out.Raw(", \"unit\": ").String(UnitText(model.meta.unit));
    out.Raw(", \"startValue\": 0, \"endValue\": ").Number(total);
    out.Raw(",\n\"samples\": ").Array(own.size(), [&](size_t i) {
      frames.clear();
      for (NodeIndex node = own[i].stack; node != kRootNode; node = model.nodes[node].parent) {
        frames.push_back(model.nodes[node].frame);
      }
      out.Array(frames.size(), [&](size_t frame) { out.Number(frames[frames.size() - 1 - frame]); });
    });
    out.Raw(",\n\"weights\": ").Array(own.size(), [&](size_t i) { out.Number(own[i].weight); }).Raw("}");
  }
  out.Raw("]}\n");
  return out.Finish();
}

}  // namespace clrsampler
