#include "formats/profile/profile_model.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kViews[] = {"cpu",       "jit",        "pause",   "suspend-delay", "alloc",
                                        "exception", "contention", "off-cpu", "wall"};
constexpr absl::string_view kUnits[] = {"samples", "microseconds", "nanoseconds", "bytes"};
constexpr absl::string_view kKinds[] = {"unknown", "kernel", "native", "jit",     "r2r",
                                        "aot",     "role",   "mark",   "inlined", "type"};
constexpr absl::string_view kStates[] = {"none", "suspending", "paused"};
constexpr absl::string_view kLineKinds[] = {"none", "exact", "optimised"};
constexpr absl::string_view kMachines[] = {"x86-64", "arm64"};
constexpr absl::string_view kEventTexts[] = {"pause", "collection", "compilation"};
static_assert(std::size(kEventTexts) == kModelEventKindCount);
static_assert(std::size(kViews) == kProfileViewCount);
static_assert(std::size(kMachines) == kCodeMachineCount);
static_assert(std::size(kLineKinds) == kLineKindCount);
static_assert(std::size(kKinds) == kModelFrameKindCount);
static_assert(std::size(kStates) == kSampleStateCount);

template <typename Enum, size_t N>
std::optional<Enum> Find(const absl::string_view (&words)[N], absl::string_view text) {
  const auto* found = std::find(std::begin(words), std::end(words), text);
  if (found == std::end(words)) return std::nullopt;
  return static_cast<Enum>(found - std::begin(words));
}

// Whether the offsets of the entries ascend and are less than `end`.
template <typename Entry>
bool Ascend(const std::vector<Entry>& entries, size_t end) {
  uint64_t least = 0;
  for (const Entry& entry : entries) {
    if (entry.offset < least || entry.offset >= end) return false;
    least = uint64_t{entry.offset} + 1;
  }
  return true;
}

// The same for parts that have data each.
bool Ascend(const std::vector<ModelUnwind>& parts, size_t end) {
  uint32_t least = 0;
  for (const ModelUnwind& part : parts) {
    if (part.begin < least || part.end <= part.begin || part.end > end) return false;
    if (part.bytes.empty() || part.bytes.size() > kMaxUnwindBytes) return false;
    least = part.end;
  }
  return true;
}

}  // namespace

absl::string_view ProfileViewText(ProfileView view) { return kViews[static_cast<size_t>(view)]; }
std::optional<ProfileView> ProfileViewOf(absl::string_view text) { return Find<ProfileView>(kViews, text); }
absl::string_view WeightUnitText(WeightUnit unit) { return kUnits[static_cast<size_t>(unit)]; }
std::optional<WeightUnit> WeightUnitOf(absl::string_view text) { return Find<WeightUnit>(kUnits, text); }
absl::string_view ModelFrameKindText(ModelFrameKind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::optional<ModelFrameKind> ModelFrameKindOf(absl::string_view text) { return Find<ModelFrameKind>(kKinds, text); }
absl::string_view LineKindText(LineKind kind) { return kLineKinds[static_cast<size_t>(kind)]; }
std::optional<LineKind> LineKindOf(absl::string_view text) { return Find<LineKind>(kLineKinds, text); }
absl::string_view CodeMachineText(CodeMachine machine) { return kMachines[static_cast<size_t>(machine)]; }
std::optional<CodeMachine> CodeMachineOf(absl::string_view text) { return Find<CodeMachine>(kMachines, text); }
absl::string_view SampleStateText(SampleState state) { return kStates[static_cast<size_t>(state)]; }
absl::string_view ModelEventKindText(ModelEventKind kind) { return kEventTexts[static_cast<size_t>(kind)]; }
std::optional<ModelEventKind> ModelEventKindOf(absl::string_view text) {
  return Find<ModelEventKind>(kEventTexts, text);
}
std::optional<SampleState> SampleStateOf(absl::string_view text) { return Find<SampleState>(kStates, text); }

uint64_t ProfileMeta::recorded_ns() const {
  uint64_t sum = 0;
  for (const TimeStretch& stretch : Stretches()) sum += stretch.end_ns - stretch.begin_ns;
  return sum;
}

std::vector<TimeStretch> ProfileMeta::Stretches() const {
  if (!recorded.empty() || duration_ns == 0) return recorded;
  return {{0, duration_ns}};
}

void ProfileMeta::SetRecorded(std::vector<TimeStretch> stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](const TimeStretch& a, const TimeStretch& b) { return a.begin_ns < b.begin_ns; });
  recorded.clear();
  for (TimeStretch stretch : stretches) {
    stretch.end_ns = std::min(stretch.end_ns, duration_ns);
    if (stretch.begin_ns >= stretch.end_ns) continue;
    if (recorded.empty() || stretch.begin_ns > recorded.back().end_ns) {
      recorded.push_back(stretch);
    } else {
      recorded.back().end_ns = std::max(recorded.back().end_ns, stretch.end_ns);
    }
  }
  if (recorded == std::vector<TimeStretch>{{0, duration_ns}}) recorded.clear();
}

ModelFrame WithoutLine(ModelFrame frame) {
  frame.line = frame.column = 0;
  frame.line_kind = LineKind::kNone;
  return frame;
}

bool HasLines(const ProfileModel& model) {
  return std::any_of(model.frames.begin(), model.frames.end(), [](const ModelFrame& frame) { return frame.line != 0; });
}

std::string ProcessLabel(const ProfileModel& model, const ModelThread& thread) {
  const absl::string_view comm = thread.comm == 0 ? "process" : model.text(thread.comm);
  return model.meta.whole_host && thread.pid != 0 ? absl::StrCat(comm, "-", thread.pid) : std::string(comm);
}

std::vector<uint64_t> SelfWeights(const ProfileModel& model) {
  std::vector<uint64_t> self(model.nodes.size(), 0);
  for (size_t row = 0; row < model.samples.size(); ++row) {
    self[model.samples.stack[row]] += model.samples.weight_of(row);
  }
  return self;
}

std::vector<uint64_t> TotalWeights(const ProfileModel& model, std::span<const uint64_t> self) {
  std::vector<uint64_t> total(self.begin(), self.end());
  for (size_t node = model.nodes.size(); node-- > 1;) total[model.nodes[node].parent] += total[node];
  return total;
}

size_t ProfileModelBuilder::StringHash::operator()(absl::string_view text) const { return absl::HashOf(text); }

ProfileModelBuilder::ProfileModelBuilder(const ModelLimits& limits) : limits_(limits) { string_ids_.insert(0); }

bool ProfileModelBuilder::Takes(size_t size, size_t limit, absl::string_view what) {
  if (size >= limit) Fail(absl::ResourceExhaustedError(absl::StrCat("more than ", limit, " ", what)));
  return ok();
}

void ProfileModelBuilder::Fail(absl::Status status) {
  status_.Update(WithHint(std::move(status), "no recording is like that; was the file made by hand, or damaged?"));
}

StringIndex ProfileModelBuilder::String(absl::string_view text) {
  if (const auto found = string_ids_.find(text); found != string_ids_.end()) return *found;
  StringTable& strings = model_.strings;
  if (text.size() > kMaxModelStringBytes) {
    Fail(absl::ResourceExhaustedError(absl::StrCat("a name of ", text.size(), " bytes; at most 1 MiB is read")));
  } else if (text.size() > kMaxModelTextBytes - strings.bytes_.size()) {
    Fail(absl::ResourceExhaustedError("the names have more than 1 GiB together"));
  }
  if (!ok() || !Takes(strings.ends_.size(), limits_.frames, "names")) return 0;
  strings.bytes_.append(text.data(), text.size());
  strings.ends_.push_back(static_cast<uint32_t>(strings.bytes_.size()));
  const auto index = static_cast<StringIndex>(strings.ends_.size() - 1);
  string_ids_.insert(index);
  return index;
}

FrameIndex ProfileModelBuilder::Frame(ModelFrame frame) {
  if (frame.name == 0) frame.name = String("[unnamed]");
  if (frame.line == 0) frame = WithoutLine(frame);
  if (const auto found = frame_ids_.find(frame); found != frame_ids_.end()) return *found;
  if (!Takes(model_.frames.size(), limits_.frames, "distinct frames")) return 0;
  const auto index = static_cast<FrameIndex>(model_.frames.size());
  model_.frames.push_back(frame);
  frame_ids_.insert(index);
  return index;
}

ThreadIndex ProfileModelBuilder::Thread(const ModelThread& thread) {
  if (const auto found = thread_ids_.find(thread); found != thread_ids_.end()) return found->second;
  if (!Takes(model_.threads.size(), limits_.frames, "threads")) return 0;
  const auto index = static_cast<ThreadIndex>(model_.threads.size());
  model_.threads.push_back(thread);
  thread_ids_.emplace(thread, index);
  return index;
}

NodeIndex ProfileModelBuilder::Node(NodeIndex parent, FrameIndex frame) {
  if (const auto found = node_ids_.find(StackNode{parent, frame}); found != node_ids_.end()) return *found;
  if (depths_[parent] >= kMaxModelStackFrames) {
    Fail(absl::ResourceExhaustedError(absl::StrCat("a stack of more than ", kMaxModelStackFrames, " frames")));
  }
  if (!ok() || !Takes(model_.nodes.size(), limits_.nodes, "frames in distinct stacks")) return parent;
  model_.nodes.push_back({parent, frame});
  depths_.push_back(static_cast<uint16_t>(depths_[parent] + 1));
  const auto index = static_cast<NodeIndex>(model_.nodes.size() - 1);
  node_ids_.insert(index);
  return index;
}

NodeIndex ProfileModelBuilder::Stack(std::span<const FrameIndex> root_first) {
  NodeIndex node = kRootNode;
  for (const FrameIndex frame : root_first) node = Node(node, frame);
  return node;
}

bool ProfileModelBuilder::Source(StringIndex file, StringIndex url, absl::string_view text) {
  if (file == 0 || !ok()) return text.empty();
  const auto [found, added] = source_ids_.try_emplace(file, model_.sources.size());
  if (added && Takes(model_.sources.size(), limits_.frames, "files of source text")) {
    model_.sources.push_back({.file = file});
  }
  if (!ok()) return text.empty();
  ModelSource& source = model_.sources[found->second];
  if (source.url == 0) source.url = url;
  if (text.empty() || !source.text.empty()) return true;
  if (text.size() > kMaxSourceTextBytes || text.size() > kMaxSourceTextsBytes - source_bytes_) return false;
  source.text = std::string(text);
  source_bytes_ += text.size();
  return true;
}

bool ProfileModelBuilder::Code(ModelCode code) {
  if (!ok() || code.bytes.empty()) return false;
  if (code.bytes.size() > kMaxCodeBodyBytes || code.bytes.size() > kMaxCodeBodiesBytes - code_bytes_) return false;
  if (code.frame >= model_.frames.size() || !Ascend(code.lines, code.bytes.size()) ||
      !Ascend(code.self, code.bytes.size()) || !Ascend(code.unwind, code.bytes.size())) {
    Fail(absl::DataLossError("machine code whose frame, lines, samples or unwind data are not in order"));
  }
  if (!Takes(model_.code.size(), limits_.frames, "bodies of machine code")) return false;
  std::erase_if(code.self, [](const ModelCodeWeight& at) { return at.weight == 0; });
  code_bytes_ += code.bytes.size();
  model_.code.push_back(std::move(code));
  return true;
}

void ProfileModelBuilder::Event(const ModelEvent& event) {
  if (!ok() || !Takes(model_.events.size(), limits_.frames, "events")) return;
  model_.events.push_back(event);
}

LinkIndex ProfileModelBuilder::Link(const TraceLink& link) {
  if (!link.valid() || !ok()) return 0;
  const auto [found, added] = link_ids_.try_emplace(link, static_cast<LinkIndex>(model_.links.size()));
  if (added) model_.links.push_back(link);
  return found->second;
}

void ProfileModelBuilder::Add(const ModelSample& sample) {
  if (sample.weight == 0 || !ok()) return;
  if (sample.weight > kMaxTotalWeight - model_.total_weight) {
    return Fail(absl::OutOfRangeError("the weights of the samples add up to 2^63 or more"));
  }
  model_.total_weight += sample.weight;
  SampleColumns& columns = model_.samples;
  const size_t rows = columns.size();
  if (!Takes(rows, limits_.samples, "samples")) return;
  // A column begins with the first row that needs it.
  if (columns.time_ns.empty() && sample.time_ns != kNoTime) columns.time_ns.assign(rows, kNoTime);
  if (columns.state.empty() && sample.state != SampleState::kNone) columns.state.assign(rows, SampleState::kNone);
  if (columns.weight.empty() && sample.weight != 1) columns.weight.assign(rows, 1);
  if (columns.link.empty() && sample.link != 0) columns.link.assign(rows, 0);
  columns.thread.push_back(sample.thread);
  columns.stack.push_back(sample.stack);
  if (!columns.time_ns.empty() || sample.time_ns != kNoTime) columns.time_ns.push_back(sample.time_ns);
  if (!columns.state.empty() || sample.state != SampleState::kNone) columns.state.push_back(sample.state);
  if (!columns.weight.empty() || sample.weight != 1) columns.weight.push_back(sample.weight);
  if (!columns.link.empty() || sample.link != 0) columns.link.push_back(sample.link);
}

absl::StatusOr<ProfileModel> ProfileModelBuilder::Build() && {
  if (!ok()) return status_;
  std::stable_sort(model_.events.begin(), model_.events.end(),
                   [](const ModelEvent& a, const ModelEvent& b) { return a.time_ns < b.time_ns; });
  return std::move(model_);
}

}  // namespace clrsampler
