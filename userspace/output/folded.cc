#include "output/folded.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "formats/names/folded_text.h"
#include "output/text_chunk.h"
#include "status/status.h"

namespace clrsampler {
namespace {

FrameSuffix SuffixOf(ModelFrameKind kind) {
  switch (kind) {
    case ModelFrameKind::kKernel:
      return FrameSuffix::kKernel;
    case ModelFrameKind::kJit:
    case ModelFrameKind::kR2r:
    case ModelFrameKind::kAot:
      return FrameSuffix::kManaged;
    case ModelFrameKind::kInlined:
      return FrameSuffix::kInlined;
    case ModelFrameKind::kUnknown:
    case ModelFrameKind::kNative:
    case ModelFrameKind::kRole:
    case ModelFrameKind::kMark:
    case ModelFrameKind::kType:
      return FrameSuffix::kNone;
  }
  return FrameSuffix::kNone;
}

// Flushed at this size; a write call for each line would cost more than making it.

// Distinct texts of frames and processes, and the place of a line that has one of them at some place while the lines
// are equal up to there. A text comes with nothing behind it, or with further frames. Both are needed, because "a b"
// comes between "a" and "a;c".
class LineTexts {
 public:
  uint32_t Add(const std::string& text) {
    const auto [found, added] = ids_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (added) texts_.push_back(found->first);
    return found->second;
  }

  void Rank() {
    std::vector<uint32_t> order(texts_.size() * 2);
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto text = [this](uint32_t key) { return absl::string_view(texts_[key / 2]); };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const absl::string_view x = text(a), y = text(b);
      const size_t common = std::min(x.size(), y.size());
      if (const int order_of_common = x.substr(0, common).compare(y.substr(0, common))) return order_of_common < 0;
      // The character behind the shorter one: its line's end, a ';', or more of the longer one, which holds no ';'.
      const auto next = [&](absl::string_view t, uint32_t key) {
        return t.size() > common ? static_cast<int>(static_cast<unsigned char>(t[common])) : key % 2 == 0 ? -1 : ';';
      };
      return next(x, a) < next(y, b);
    });
    ranks_.resize(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) ranks_[order[i]] = i;
  }

  size_t size() const { return texts_.size(); }
  absl::string_view text(uint32_t id) const { return texts_[id]; }
  uint32_t rank_of_line(uint32_t id) const { return ranks_[id * 2]; }
  uint32_t rank_of_callees(uint32_t id) const { return ranks_[id * 2 + 1]; }

 private:
  absl::flat_hash_map<std::string, uint32_t> ids_;
  std::vector<std::string> texts_;
  std::vector<uint32_t> ranks_;
};

// The model's tree as far as one process has samples of it. All processes together may have thousands of times as many
// nodes as the model: there is one at a time.
class LineTree {
 public:
  // Rows from `second` on count in the second column. All are borrowed.
  LineTree(const ProfileModel& model, const std::vector<uint32_t>& frame_texts, size_t second)
      : model_(model), frame_texts_(frame_texts), second_(second), own_node_(model.nodes.size(), kNone) {}

  // The tree of the process that has these rows and this text, in place of the one before.
  void Build(std::span<const uint32_t> rows, uint32_t process_text) {
    parents_.clear();
    texts_.clear();
    weights_.clear();
    own_node_[kRootNode] = Append(kProcess, process_text);
    seen_.assign(1, kRootNode);
    for (const uint32_t row : rows) {
      const NodeIndex leaf = model_.samples.stack[row];
      const size_t known = seen_.size();
      for (NodeIndex node = leaf; own_node_[node] == kNone; node = model_.nodes[node].parent) {
        own_node_[node] = 0;
        seen_.push_back(node);
      }
      for (size_t i = seen_.size(); i-- > known;) {  // from the root on
        const StackNode& node = model_.nodes[seen_[i]];
        own_node_[seen_[i]] = Append(own_node_[node.parent], frame_texts_[node.frame]);
      }
      weights_[own_node_[leaf]][row < second_ ? 0 : 1] += model_.samples.weight_of(row);
    }
    for (const NodeIndex node : seen_) own_node_[node] = kNone;
    SortByParent();
  }

  static constexpr uint32_t kProcess = 0;
  uint32_t text(uint32_t node) const { return texts_[node]; }
  // The weights of samples that end here, by column.
  const std::array<uint64_t, 2>& weights(uint32_t node) const { return weights_[node]; }
  std::span<const uint32_t> callees(uint32_t node) const {
    return std::span(children_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t Append(uint32_t parent, uint32_t text) {
    parents_.push_back(parent);
    texts_.push_back(text);
    weights_.push_back({});
    return static_cast<uint32_t>(texts_.size() - 1);
  }

  void SortByParent() {
    begins_.assign(texts_.size() + 1, 0);
    for (size_t i = 1; i < parents_.size(); ++i) ++begins_[parents_[i] + 1];
    for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    children_.resize(texts_.size() - 1);
    std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (size_t i = 1; i < parents_.size(); ++i) children_[next[parents_[i]]++] = static_cast<uint32_t>(i);
  }

  const ProfileModel& model_;
  const std::vector<uint32_t>& frame_texts_;
  const size_t second_;
  std::vector<uint32_t> own_node_;  // for each of the model's; kNone between processes
  std::vector<NodeIndex> seen_;     // that have one
  std::vector<uint32_t> parents_;
  std::vector<uint32_t> texts_;
  std::vector<std::array<uint64_t, 2>> weights_;
  std::vector<uint32_t> begins_;  // of a node's callees in children_
  std::vector<uint32_t> children_;
};

// Walks the trees in the order of their lines. Nodes below one parent that read the same are walked together.
class LineWriter {
 public:
  // With a factor there are two columns, and it is for the first.
  LineWriter(const LineTree& tree, const LineTexts& texts, const OutputSink& sink, std::optional<double> factor)
      : tree_(tree), texts_(texts), sink_(sink), factor_(factor) {}

  // The line of samples without a stack.
  absl::Status WriteProcess() {
    line_ = absl::StrCat(texts_.text(tree_.text(LineTree::kProcess)));
    const uint32_t process[] = {LineTree::kProcess};
    return WriteLine(process);
  }

  absl::Status WriteStacks() {
    line_ = absl::StrCat(texts_.text(tree_.text(LineTree::kProcess)), ";");
    const uint32_t process[] = {LineTree::kProcess};
    size_t depth = 0;
    Enter(process, depth);
    while (true) {
      Level& level = levels_[depth];
      if (level.next == level.entries.size()) {
        if (depth == 0) return absl::OkStatus();
        --depth;
        continue;
      }
      const Entry entry = level.entries[level.next++];
      const std::span<const uint32_t> group = std::span(level.nodes).subspan(entry.begin, entry.end - entry.begin);
      line_.resize(level.line_bytes);
      const absl::string_view text = texts_.text(tree_.text(group.front()));
      line_.append(text.data(), text.size());
      if (entry.callees) {
        line_.push_back(';');
        Enter(group, ++depth);
      } else {
        RETURN_IF_ERROR(WriteLine(group));
      }
    }
  }

  absl::Status Flush() {
    if (chunk_.empty()) return absl::OkStatus();
    absl::Status written = sink_(chunk_);
    chunk_.clear();
    return written;
  }

 private:
  struct Entry {
    uint32_t rank;
    uint32_t begin, end;  // in Level::nodes
    bool callees;         // their lines, not the own one
  };
  struct Level {
    std::vector<uint32_t> nodes;
    std::vector<Entry> entries;
    size_t next = 0;
    size_t line_bytes = 0;  // of line_ up to here
  };

  absl::Status WriteLine(std::span<const uint32_t> nodes) {
    uint64_t first = 0, second = 0;
    for (const uint32_t node : nodes) {
      first += tree_.weights(node)[0];
      second += tree_.weights(node)[1];
    }
    if (factor_) first = static_cast<uint64_t>(std::llround(static_cast<double>(first) * *factor_));
    if (first == 0 && second == 0) return absl::OkStatus();
    absl::StrAppend(&chunk_, line_, " ", first);
    if (factor_) absl::StrAppend(&chunk_, " ", second);
    chunk_ += '\n';
    return chunk_.size() < kChunkBytes ? absl::OkStatus() : Flush();
  }

  void Enter(std::span<const uint32_t> parents, size_t depth) {
    if (depth == levels_.size()) levels_.emplace_back();
    Level& level = levels_[depth];
    level.line_bytes = line_.size();
    level.next = 0;
    level.nodes.clear();
    level.entries.clear();
    for (const uint32_t parent : parents) {
      const std::span<const uint32_t> callees = tree_.callees(parent);
      level.nodes.insert(level.nodes.end(), callees.begin(), callees.end());
    }
    std::sort(level.nodes.begin(), level.nodes.end(),
              [this](uint32_t a, uint32_t b) { return tree_.text(a) < tree_.text(b); });
    for (uint32_t begin = 0, end; begin < level.nodes.size(); begin = end) {
      const uint32_t text = tree_.text(level.nodes[begin]);
      bool calls = false;
      for (end = begin; end < level.nodes.size() && tree_.text(level.nodes[end]) == text; ++end) {
        calls |= !tree_.callees(level.nodes[end]).empty();
      }
      level.entries.push_back({texts_.rank_of_line(text), begin, end, false});
      if (calls) level.entries.push_back({texts_.rank_of_callees(text), begin, end, true});
    }
    std::sort(level.entries.begin(), level.entries.end(),
              [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
  }

  const LineTree& tree_;
  const LineTexts& texts_;
  const OutputSink& sink_;
  const std::optional<double> factor_;
  std::deque<Level> levels_;  // kept for the next visit of their depth; references stay good
  std::string line_;
  std::string chunk_;
};

// The lines of one process that follow each other: all with stacks, or the one without.
struct ProcessLines {
  uint32_t rank, text;
  bool stacks;
};

std::vector<ProcessLines> LinesInOrder(const SampleColumns& samples, const LineTexts& texts,
                                       std::span<const std::vector<uint32_t>> rows_of_text) {
  std::vector<ProcessLines> parts;
  for (uint32_t text = 0; text < rows_of_text.size(); ++text) {
    const std::vector<uint32_t>& rows = rows_of_text[text];
    const auto no_stack = [&](uint32_t row) { return samples.stack[row] == kRootNode; };
    if (std::any_of(rows.begin(), rows.end(), no_stack)) parts.push_back({texts.rank_of_line(text), text, false});
    if (!std::all_of(rows.begin(), rows.end(), no_stack)) parts.push_back({texts.rank_of_callees(text), text, true});
  }
  std::sort(parts.begin(), parts.end(), [](const ProcessLines& a, const ProcessLines& b) { return a.rank < b.rank; });
  return parts;
}

// `second`: the first row of the second column.
absl::Status WriteLines(const ProfileModel& model, const WriterOptions& options, size_t second,
                        std::optional<double> factor, const OutputSink& sink) {
  LineTexts texts;
  std::vector<uint32_t> frame_texts;
  frame_texts.reserve(model.frames.size());
  for (const ModelFrame& frame : model.frames) {
    const absl::string_view name = model.text(frame.name);
    const bool annotated = options.annotate_source && frame.source != 0;
    const FrameSuffix suffix = SuffixOf(frame.kind);
    // Other profilers have lines of native code too, which readers of their folded text do not expect.
    const bool ours = suffix == FrameSuffix::kManaged || frame.line_kind != LineKind::kNone;
    const uint32_t line = ours ? frame.line : 0;
    frame_texts.push_back(
        texts.Add(annotated ? FoldedFrame(absl::StrCat(name, " [", model.text(frame.source), "]"), suffix, line)
                            : FoldedFrame(name, suffix, line)));
  }
  std::vector<uint32_t> thread_texts;
  thread_texts.reserve(model.threads.size());
  for (const ModelThread& thread : model.threads) {
    thread_texts.push_back(texts.Add(FoldedComm(ProcessLabel(model, thread))));
  }
  texts.Rank();
  std::vector<std::vector<uint32_t>> rows_of_text(texts.size());
  for (uint32_t row = 0; row < model.samples.size(); ++row) {
    rows_of_text[thread_texts[model.samples.thread[row]]].push_back(row);
  }
  LineTree tree(model, frame_texts, second);
  LineWriter writer(tree, texts, sink, factor);
  for (const ProcessLines& lines : LinesInOrder(model.samples, texts, rows_of_text)) {
    tree.Build(rows_of_text[lines.text], lines.text);
    RETURN_IF_ERROR(lines.stacks ? writer.WriteStacks() : writer.WriteProcess());
  }
  return writer.Flush();
}

}  // namespace

absl::Status FoldedWriter::Write(const ProfileModel& model, const OutputSink& sink) const {
  return WriteLines(model, options_, model.samples.size(), std::nullopt, sink);
}

absl::Status WriteFoldedDiff(const ProfileDiff& diff, const OutputSink& sink) {
  // The result is a model whose rows are the stacks of the one profile, and then those of the other.
  ProfileModelBuilder builder;
  std::vector<FrameIndex> frames;
  for (const MethodChange& method : diff.methods) {
    ModelFrame frame;
    frame.kind = method.kind;
    frame.name = builder.String(method.name);
    frames.push_back(builder.Frame(frame));
  }
  std::vector<ThreadIndex> threads(diff.stacks.size(), 0);
  std::vector<NodeIndex> nodes(diff.stacks.size(), kRootNode);
  for (size_t i = 1; i < diff.stacks.size(); ++i) {
    const StackChange& stack = diff.stacks[i];
    if (stack.process) {
      ModelThread thread;
      thread.comm = builder.String(diff.processes[stack.name]);
      threads[i] = builder.Thread(thread);
    } else {
      threads[i] = threads[stack.parent];
      nodes[i] = builder.Node(nodes[stack.parent], frames[stack.name]);
    }
  }
  for (size_t i = 1; i < diff.stacks.size(); ++i) {
    builder.Add({.thread = threads[i], .stack = nodes[i], .weight = diff.stacks[i].self_before});
  }
  const size_t second = builder.model().samples.size();
  for (size_t i = 1; i < diff.stacks.size(); ++i) {
    builder.Add({.thread = threads[i], .stack = nodes[i], .weight = diff.stacks[i].self_after});
  }
  ASSIGN_OR_RETURN(const ProfileModel model, std::move(builder).Build());
  return WriteLines(model, {}, second, diff.factor, sink);
}

}  // namespace clrsampler
