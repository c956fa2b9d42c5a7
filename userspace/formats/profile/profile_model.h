// A profile as a value: the one model that every writer of a format takes and every reader gives.
//
//   samples (columns) ──► thread, stack ──► node ──► parent node ... ──► node 0, the root
//                                             └────► frame ──► strings
//
// Tables refer to each other by index; entry 0 of `strings` is "", node 0 is the root. A stack is named by the node of
// its leaf frame: the frames on the way up from there are its callers. Parents come before their children, so one pass
// over `nodes` in either direction replaces a recursion. ProfileModelBuilder is the one way to fill a model, and keeps
// these invariants and the limits below whatever it is given; readers of a model may rely on them.
//
// Sizes: 8 bytes a node, 64 a frame, 17 a sample with time (9 fewer without times and states, 8 more with weights, 4
// more with links).
// A value: no locks; threads may share it while nobody writes.
#ifndef CLRSAMPLER_FORMATS_PROFILE_PROFILE_MODEL_H_
#define CLRSAMPLER_FORMATS_PROFILE_PROFILE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/labels/process_labels.h"
#include "formats/names/line_kind.h"
#include "formats/profile/model_code.h"
#include "formats/profile/model_event.h"
#include "formats/profile/trace_link.h"

namespace clrsampler {

using StringIndex = uint32_t;
using FrameIndex = uint32_t;
using NodeIndex = uint32_t;
using ThreadIndex = uint32_t;
using LinkIndex = uint32_t;

inline constexpr NodeIndex kRootNode = 0;                                         // the stack without frames
inline constexpr uint64_t kNoTime = std::numeric_limits<uint64_t>::max();         // of a sample
inline constexpr uint64_t kMaxTotalWeight = std::numeric_limits<int64_t>::max();  // of a profile; what pprof can hold
inline constexpr uint32_t kMaxModelStackFrames = 4096;  // of a stack; ours have at most some 1200
inline constexpr size_t kMaxModelNodes = 1 << 28;
inline constexpr size_t kMaxModelStringBytes = 1 << 20;   // of a name; the account is no name
inline constexpr size_t kMaxModelTextBytes = 1 << 30;     // of all strings
inline constexpr size_t kMaxSourceTextBytes = 4 << 20;    // of one file of source text
inline constexpr size_t kMaxSourceTextsBytes = 64 << 20;  // of all of them

// Entries of a model's tables. A recording of our own has as many as it has. A file that is read has limits, because a
// compressed file of a few megabytes may say that there are half a billion of anything. 8 CPUs that are always busy
// take two and a half days at 19 Hz for as many samples.
struct ModelLimits {
  size_t samples = std::numeric_limits<size_t>::max();
  size_t nodes = kMaxModelNodes;
  size_t frames = std::numeric_limits<size_t>::max();  // and threads, and strings
};
inline constexpr ModelLimits kReadLimits = {.samples = 1 << 25, .nodes = 1 << 25, .frames = 1 << 22};

// The meaning of the weights of a profile's samples; words of `--view` and `--event`.
enum class ProfileView : uint8_t {
  kCpu,
  kJit,
  kPause,
  kSuspendDelay,
  kAllocations,
  kExceptions,
  kContention,
  kOffCpu,
  kWall
};
inline constexpr int kProfileViewCount = 9;
// "cpu", "jit", "pause", "suspend-delay", "alloc", "exception", "contention", "off-cpu", "wall"
absl::string_view ProfileViewText(ProfileView view);
std::optional<ProfileView> ProfileViewOf(absl::string_view text);
// Whether its samples are waits. A wait's weight is how long it lasted.
constexpr bool HasWaits(ProfileView view) { return view == ProfileView::kOffCpu || view == ProfileView::kWall; }

enum class WeightUnit : uint8_t { kSamples, kMicroseconds, kNanoseconds, kBytes };
absl::string_view WeightUnitText(WeightUnit unit);  // "samples", "microseconds", "nanoseconds", "bytes"
std::optional<WeightUnit> WeightUnitOf(absl::string_view text);

enum class ModelFrameKind : uint8_t {
  kUnknown,  // foreign formats often do not say
  kKernel,
  kNative,   // ELF code
  kJit,      // compiled in the process, runtime stubs included
  kR2r,      // precompiled managed code
  kAot,      // managed code of a NativeAOT program
  kRole,     // no code: what a thread of the runtime is for
  kMark,     // no code: a word about the stack at that place
  kInlined,  // code that stands inside its caller's
  kType,     // no code: of what type the object is that its caller allocates or throws
};
inline constexpr int kModelFrameKindCount = 10;
absl::string_view ModelFrameKindText(ModelFrameKind kind);  // "kernel", as .json files have it
std::optional<ModelFrameKind> ModelFrameKindOf(absl::string_view text);

// The activity of the sampled process's runtime.
enum class SampleState : uint8_t {
  kNone,        // nothing special, or not known
  kSuspending,  // managed threads were asked to stop
  kPaused,      // all of them stood still
};
inline constexpr int kSampleStateCount = 3;
absl::string_view SampleStateText(SampleState state);  // "none", "suspending", "paused"
std::optional<SampleState> SampleStateOf(absl::string_view text);

inline constexpr int kLineKindCount = 3;
absl::string_view LineKindText(LineKind kind);  // "none", "exact", "optimised"
std::optional<LineKind> LineKindOf(absl::string_view text);

// Members of type StringIndex may be 0: not known. In a profile with lines, a method has one frame for each of its
// lines.
struct ModelFrame {
  ModelFrameKind kind = ModelFrameKind::kUnknown;
  LineKind line_kind = LineKind::kNone;
  StringIndex name = 0;  // what people read, without annotations of a format; never empty
  // The linker's name for it; of managed methods MethodSymbol (formats/names/frame_text.h); foreign formats: the
  // runtime's own text. 0: not known, or the same as the name.
  StringIndex system_name = 0;
  StringIndex source = 0;  // what named it: words of NameSourceText, "jitdump"; "": not known or unnamed
  StringIndex module = 0;  // assembly or file name of the image
  StringIndex module_path = 0;
  StringIndex build_id = 0;     // of the image, hexadecimal
  StringIndex file_hash = 0;    // of the image: HeadTailLengthHash (os/digest.h)
  StringIndex tier = 0;         // of managed code, the runtime's word
  StringIndex source_file = 0;  // of the method's source text, as its compiler or a foreign format has it
  // The address of its first byte in the image, as linked (ELF) or from the image's start (PE), and bytes of code from
  // there. 0: not known. Code that is compiled in the process has neither.
  uint64_t address = 0;
  uint32_t size = 0;
  uint32_t line = 0;    // in source_file, from 1; 0: not known
  uint32_t column = 0;  // in that line, from 1; 0: not known

  friend bool operator==(const ModelFrame&, const ModelFrame&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ModelFrame& f) {
    return H::combine(std::move(h), f.kind, f.name, f.system_name, f.source, f.module, f.module_path, f.build_id,
                      f.file_hash, f.tier, f.source_file, f.address, f.size, f.line, f.column, f.line_kind);
  }
};

// A file of source text that frames name.
struct ModelSource {
  StringIndex file = 0;  // as frames have it in source_file
  StringIndex url = 0;   // where the text can be had, as a file of strangers says; 0: not known
  // The text itself, any bytes, in a profile that is meant to hold it; "": not there. It is no entry of the strings, so
  // that no writer gives it away with its names.
  std::string text;

  friend bool operator==(const ModelSource&, const ModelSource&) = default;
};

struct StackNode {
  NodeIndex parent = kRootNode;  // less than the node's own index
  FrameIndex frame = 0;          // of node 0: none; do not look

  friend bool operator==(const StackNode&, const StackNode&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StackNode& node) {
    return H::combine(std::move(h), node.parent, node.frame);
  }
};

struct ModelThread {
  uint32_t pid = 0;              // 0: not known
  uint32_t tid = 0;              // 0: not known, or all threads of the process together
  StringIndex comm = 0;          // of the process; may be empty
  StringIndex name = 0;          // of the thread; may be empty
  StringIndex container_id = 0;  // may be empty

  friend bool operator==(const ModelThread&, const ModelThread&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ModelThread& t) {
    return H::combine(std::move(h), t.pid, t.tid, t.comm, t.name, t.container_id);
  }
};

struct ModelSample {
  uint64_t time_ns = kNoTime;  // since the start of the recording
  ThreadIndex thread = 0;
  NodeIndex stack = kRootNode;
  SampleState state = SampleState::kNone;
  uint64_t weight = 1;  // at least 1
  LinkIndex link = 0;   // 0: none
};

// A row for each sample, or for each (thread, stack, state) where times are not known. Columns of `thread` and `stack`
// have an entry for each row; the others do as well, or are empty: no row has a time, a state, a link, or another
// weight than 1.
struct SampleColumns {
  std::vector<uint64_t> time_ns;
  std::vector<ThreadIndex> thread;
  std::vector<NodeIndex> stack;
  std::vector<SampleState> state;
  std::vector<uint64_t> weight;
  std::vector<LinkIndex> link;

  size_t size() const { return stack.size(); }
  uint64_t time_of(size_t row) const { return time_ns.empty() ? kNoTime : time_ns[row]; }
  SampleState state_of(size_t row) const { return state.empty() ? SampleState::kNone : state[row]; }
  uint64_t weight_of(size_t row) const { return weight.empty() ? 1 : weight[row]; }
  LinkIndex link_of(size_t row) const { return link.empty() ? 0 : link[row]; }
  ModelSample at(size_t row) const {
    return {time_of(row), thread[row], stack[row], state_of(row), weight_of(row), link_of(row)};
  }
};

// Distinct texts, one behind the other. Entry 0 is "". Any bytes: names come from targets, or from files of strangers.
class StringTable {
 public:
  absl::string_view operator[](StringIndex index) const {
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return absl::string_view(bytes_.data() + begin, ends_[index] - begin);
  }
  size_t size() const { return ends_.size(); }

 private:
  friend class ProfileModelBuilder;
  std::string bytes_;
  std::vector<uint32_t> ends_ = {0};
};

struct TimeStretch {
  uint64_t begin_ns = 0, end_ns = 0;  // since the start of the recording

  friend bool operator==(const TimeStretch&, const TimeStretch&) = default;
};

struct ProfileMeta {
  ProfileView view = ProfileView::kCpu;
  WeightUnit unit = WeightUnit::kSamples;
  uint64_t period_ns = 0;                    // CPU time that a sample stands for; 0: not known
  uint64_t start_unix_ns = 0;                // wall clock; 0: not known
  uint64_t start_monotonic_ns = 0;           // the same moment by CLOCK_MONOTONIC of the host; 0: not known
  uint64_t duration_ns = 0;                  // from the start to the end; 0: not known
  std::vector<TimeStretch> recorded;         // of SetRecorded; empty: all of the duration
  bool whole_host = false;                   // root frames of folded stacks read comm-PID
  std::string host;                          // its name
  std::string command;                       // that was started for the recording, or none
  std::vector<uint32_t> pids;                // that were asked for
  std::map<uint32_t, ProcessLabels> labels;  // of processes that have some, by pid
  std::string creator;                       // "clrsampler 0.1.0", or what a foreign file says
  std::string account_json;                  // of the run, as docs/stats.md has it; "": none

  // The duration without its gaps: what rates are of. 0: not known.
  uint64_t recorded_ns() const;
  // The recorded parts of the duration, ascending, no two that touch.
  std::vector<TimeStretch> Stretches() const;
  // In any order, and they may overlap. All beyond the duration is left out. So the duration comes first.
  void SetRecorded(std::vector<TimeStretch> stretches);
};

struct ProfileModel {
  ProfileMeta meta;
  StringTable strings;
  std::vector<ModelFrame> frames;
  std::vector<StackNode> nodes = {{}};
  std::vector<ModelThread> threads;
  SampleColumns samples;
  std::vector<TraceLink> links = {{}};  // 0 is none
  std::vector<ModelSource> sources;     // one for each file at most
  std::vector<ModelCode> code;          // of a recording that keeps it
  std::vector<ModelEvent> events;       // in the order of their times; of a recording with samples
  uint64_t total_weight = 0;            // of all samples

  absl::string_view text(StringIndex index) const { return strings[index]; }
  const ModelFrame& frame_of(NodeIndex node) const { return frames[nodes[node].frame]; }
};

// The frame that all lines of a method share.
ModelFrame WithoutLine(ModelFrame frame);
// Whether any frame has a line.
bool HasLines(const ProfileModel& model);

// How a process is called where there is room for one word: its name, with "-PID" in a profile of a whole host.
std::string ProcessLabel(const ProfileModel& model, const ModelThread& thread);

// Weight of the samples whose leaf a node is, for each node.
std::vector<uint64_t> SelfWeights(const ProfileModel& model);
// The same with all that was called from there: entry 0 is the total. `self` has an entry for each node.
std::vector<uint64_t> TotalWeights(const ProfileModel& model, std::span<const uint64_t> self);

// Fills a model. Everything is interned: equal entries get one index. The first thing that breaks a limit makes it
// fail. From then on nothing is added and Build gives the error, so that a reader can look once at the end, or at ok()
// now and then.
class ProfileModelBuilder {
 public:
  explicit ProfileModelBuilder(const ModelLimits& limits = {});
  ProfileModelBuilder(const ProfileModelBuilder&) = delete;  // the hash functions point back at the model
  ProfileModelBuilder& operator=(const ProfileModelBuilder&) = delete;

  ProfileMeta& meta() { return model_.meta; }

  StringIndex String(absl::string_view text);
  // Without a name it becomes "[unnamed]"; without a line it has no column and no kind of line.
  FrameIndex Frame(ModelFrame frame);
  ThreadIndex Thread(const ModelThread& thread);
  // `parent` is what Node gave, or kRootNode.
  NodeIndex Node(NodeIndex parent, FrameIndex frame);
  NodeIndex Stack(std::span<const FrameIndex> root_first);
  // 0, if it is not valid.
  LinkIndex Link(const TraceLink& link);
  // The facts about a file that frames name. Calls for one file add to each other, and what was said first stays.
  // False: the text is left out, because it is larger than a source may be, or all of them are.
  bool Source(StringIndex file, StringIndex url, absl::string_view text);
  // `code.frame` is what Frame gave. False: it is left out, because it or all of them are larger than a profile may
  // hold. Fails where its offsets do not ascend or lie outside of it.
  bool Code(ModelCode code);
  // A sample of weight 0 is none.
  void Add(const ModelSample& sample);
  // In any order; Build sorts them.
  void Event(const ModelEvent& event);

  void Fail(absl::Status status);  // of a reader's own limits; the first one counts
  bool ok() const { return status_.ok(); }
  const ProfileModel& model() const { return model_; }
  absl::StatusOr<ProfileModel> Build() &&;

 private:
  struct StringHash {
    using is_transparent = void;
    const StringTable* table;
    size_t operator()(StringIndex index) const { return (*this)((*table)[index]); }
    size_t operator()(absl::string_view text) const;
  };
  struct StringEqual {
    using is_transparent = void;
    const StringTable* table;
    bool operator()(StringIndex a, StringIndex b) const { return a == b; }
    bool operator()(absl::string_view a, StringIndex b) const { return a == (*table)[b]; }
    bool operator()(StringIndex a, absl::string_view b) const { return (*table)[a] == b; }
  };
  // The indexes of the entries of a table.
  template <typename Entry>
  struct EntryHash {
    using is_transparent = void;
    const std::vector<Entry>* entries;
    size_t operator()(uint32_t index) const { return (*this)((*entries)[index]); }
    size_t operator()(const Entry& entry) const { return absl::HashOf(entry); }
  };
  template <typename Entry>
  struct EntryEqual {
    using is_transparent = void;
    const std::vector<Entry>* entries;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(const Entry& a, uint32_t b) const { return a == (*entries)[b]; }
    bool operator()(uint32_t a, const Entry& b) const { return (*entries)[a] == b; }
  };
  template <typename Entry>
  using IndexSet = absl::flat_hash_set<uint32_t, EntryHash<Entry>, EntryEqual<Entry>>;

  // False, and failed, where a table of `size` entries takes no more.
  bool Takes(size_t size, size_t limit, absl::string_view what);

  const ModelLimits limits_;
  ProfileModel model_;
  absl::Status status_;
  absl::flat_hash_set<StringIndex, StringHash, StringEqual> string_ids_{0, StringHash{&model_.strings},
                                                                        StringEqual{&model_.strings}};
  IndexSet<ModelFrame> frame_ids_{0, {&model_.frames}, {&model_.frames}};
  absl::flat_hash_map<ModelThread, ThreadIndex> thread_ids_;
  IndexSet<StackNode> node_ids_{0, {&model_.nodes}, {&model_.nodes}};
  absl::flat_hash_map<TraceLink, LinkIndex> link_ids_;
  absl::flat_hash_map<StringIndex, size_t> source_ids_;  // by file
  size_t source_bytes_ = 0;                              // of all texts
  size_t code_bytes_ = 0;                                // of all bodies
  std::vector<uint16_t> depths_ = {0};                   // of each node: frames of its stack
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROFILE_PROFILE_MODEL_H_
