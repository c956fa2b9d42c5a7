#include "pipeline/window_builder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/scaled_sum.h"
#include "profile/labels_by_pid.h"
#include "profile/model_sources.h"
#include "profile/stack_importer.h"

namespace clrsampler {
namespace {

// The most methods that a window remembers before the costliest are chosen. Beyond this number, a method that is
// compiled for the first time is left out.
constexpr size_t kMaxMethodsMet = 4 * Window::kMaxMethods;

}  // namespace

void WindowBuilder::Clear() {
  main_loop_.Check();
  rows_.clear();
  rows_of_.clear();
  threads_.clear();
  threads_of_.clear();
  stacks_ = std::make_unique<StackTable>();
  labels_.clear();
  samples_.clear();
  links_ = TraceLinks(Window::kMaxLinks);
  delays_.clear();
  compiled_.clear();
  allocated_.clear();
  unscaled_.clear();
  waited_.clear();
  waits_.Clear();
  pauses_.clear();
  pauses_left_out_ = 0;
  methods_.clear();
  methods_of_.clear();
  methods_left_out_ = 0;
}

uint32_t WindowBuilder::RowOf(ProcessKey key) {
  const auto [found, added] = rows_of_.try_emplace(key, static_cast<uint32_t>(rows_.size()));
  if (added) {
    Row row;
    row.key = key;
    row.process.pid = key.tgid;
    rows_.push_back(std::move(row));
    labels_.push_back(stacks_->InternLabel(absl::StrCat(found->second)));
  }
  return found->second;
}

uint32_t WindowBuilder::RowOf(const Process& process) {
  const uint32_t row = RowOf(process.key);
  WindowProcess& known = rows_[row].process;
  if (!std::exchange(rows_[row].described, true) || known.comm != process.comm) {
    known.comm = process.comm;
    known.started_boot_ns = process.started_boot_ns;
    known.container = process.container.Label();
    known.container_id = process.container.cgroup.container_id;
    known.pod_uid = process.container.cgroup.pod_uid;
    known.uid = process.uid;
  }
  return row;
}

uint32_t WindowBuilder::ThreadOf(uint32_t row, uint32_t tid, absl::string_view name) {
  const auto [found, added] = threads_of_.try_emplace({row, tid}, static_cast<uint32_t>(threads_.size()));
  if (added) {
    threads_.push_back({row, tid, std::string(name)});
  } else if (!name.empty() && threads_[found->second].name != name) {
    threads_[found->second].name.assign(
        name.data(), name.size());  // renamed, as threads of a pool are: the last name stands for the window
  }
  return found->second;
}

StackId WindowBuilder::Intern(uint32_t row, std::span<const FrameId> frames) {
  return stacks_->Intern(labels_[row], frames);
}

bool WindowBuilder::Add(const NamedSample& named) {
  main_loop_.Check();
  const wire_cpu_sample& sample = named.sample;
  const uint32_t row = RowOf(named.process);
  WindowProcess& process = rows_[row].process;
  ++process.samples;
  ++(named.end == StackEnd::kComplete ? process.stacks_complete : process.stacks_cut);
  CpuShare share = CpuShare::kNative;
  if (named.role) {
    share = *named.role == RuntimeRoleKind::kCompiling ? CpuShare::kJit : CpuShare::kGc;
  } else {
    for (auto frame = named.frames.rbegin(); frame != named.frames.rend(); ++frame) {
      const FrameKind kind = frames_.at(*frame).kind;
      if (kind == FrameKind::kMark || kind == FrameKind::kRole || kind == FrameKind::kType) continue;
      if (kind == FrameKind::kKernel) share = CpuShare::kKernel;
      if (IsManaged(kind)) share = CpuShare::kManaged;
      break;
    }
  }
  process.cpu_ns[static_cast<size_t>(share)] += named.weight_ns;
  const StackId stack = Intern(row, named.frames);
  stacks_->Add(stack, 1);
  const uint32_t thread = ThreadOf(row, sample.tid, {sample.comm, strnlen(sample.comm, sizeof sample.comm)});
  samples_.push_back({sample.header.time_ns - std::min<uint64_t>(sample.header.time_ns, begin_.ns), named.weight_ns,
                      thread, stack, StateOf(named.phase), links_.Number(named.link)});
  return true;
}

uint64_t WindowBuilder::AddPause(const ObservedPause& observed) {
  main_loop_.Check();
  const Pause& pause = observed.pause;
  const uint32_t row = RowOf(observed.process);
  WindowProcess& process = rows_[row].process;
  ++process.pauses;
  process.pause_ns += pause.pause_ns();
  process.suspend_ns += pause.suspend_ns();
  WindowPause kept;
  kept.process = row;
  kept.requested_unix_ns = begin_unix_ns_ + pause.requested.ns - begin_.ns;
  kept.suspend_ns = pause.suspend_ns();
  kept.pause_ns = pause.pause_ns();
  kept.kind = std::string(PauseKindText(pause.kind));
  kept.reason = std::string(SuspendReasonText(pause.reason));
  kept.gc_reason = std::string(GcReasonText(pause.gc_reason));
  kept.generation = pause.generation;
  kept.gc_index = pause.gc_index;
  kept.induced = pause.induced;
  kept.tid = pause.tid;
  kept.thread_name = pause.comm;
  kept.culprits = observed.culprits;
  pauses_.push_back(std::move(kept));
  if (pauses_.size() >= 2 * Window::kMaxPauses) PrunePauses();
  for (const BlamedStack& blamed : observed.stacks) {
    delays_.push_back({ThreadOf(row, blamed.tid, ""), Intern(row, blamed.frames), blamed.delay_ns});
  }
  return 0;  // its samples have been in the profile all along
}

void WindowBuilder::PrunePauses() {
  if (pauses_.size() <= Window::kMaxPauses) return;
  const auto middle = pauses_.begin() + Window::kMaxPauses;
  std::nth_element(pauses_.begin(), middle, pauses_.end(),
                   [](const WindowPause& a, const WindowPause& b) { return a.pause_ns > b.pause_ns; });
  pauses_left_out_ += static_cast<uint64_t>(pauses_.end() - middle);
  pauses_.erase(middle, pauses_.end());
}

void WindowBuilder::AddCollection(ProcessKey key, const GcDone& done) {
  main_loop_.Check();
  WindowProcess& process = rows_[RowOf(key)].process;
  ++process.collections[std::min<size_t>(done.generation, process.collections.size() - 1)];
  process.background_collections += done.background ? 1 : 0;
}

void WindowBuilder::AddCompilation(ProcessKey process, const NamedCompilation& named) {
  main_loop_.Check();
  const uint32_t row = RowOf(process);
  const uint64_t own_ns = named.compilation.own_ns();
  ++rows_[row].process.compilations;
  rows_[row].process.compile_ns += own_ns;
  auto key = std::make_tuple(row, named.method, named.tier);
  auto found = methods_of_.find(key);
  if (found == methods_of_.end()) {
    if (methods_.size() >= kMaxMethodsMet) {
      ++methods_left_out_;
      return;
    }
    found = methods_of_.emplace(std::move(key), static_cast<uint32_t>(methods_.size())).first;
    methods_.push_back({row, named.method, named.tier, 0, 0, 0, 0});
  }
  WindowMethod& method = methods_[found->second];
  ++method.count;
  method.total_ns += own_ns;
  method.longest_ns = std::max(method.longest_ns, own_ns);
  method.bytes += named.compilation.bytes;
}

void WindowBuilder::AddCompiledStack(const Process& process, std::span<const FrameId> frames, uint64_t own_ns) {
  main_loop_.Check();
  const uint32_t row = RowOf(process);
  compiled_.push_back({ThreadOf(row, 0, ""), Intern(row, frames), own_ns});
}

void WindowBuilder::AddAllocation(const ObservedAllocation& allocation) {
  main_loop_.Check();
  const uint32_t row = RowOf(allocation.process);
  unscaled_[allocation.process].push_back(
      {ThreadOf(row, allocation.tid, ""), Intern(row, allocation.frames), allocation.bytes});
}

void WindowBuilder::ScaleAllocations(ProcessKey process, double factor) {
  main_loop_.Check();
  const auto found = unscaled_.find(process);
  if (found == unscaled_.end()) return;
  uint64_t& allocated_bytes = rows_[RowOf(process)].process.allocated_bytes;
  ScaledSum scaled(factor);
  for (WeighedStack& allocation : found->second) {
    allocation.weight = scaled.Next(allocation.weight);
    allocated_bytes += allocation.weight;
    allocated_.push_back(allocation);
  }
  unscaled_.erase(found);
}

void WindowBuilder::AddWait(const ObservedWait& wait) {
  main_loop_.Check();
  if (WindowWaits::PartNs(wait, begin_) == 0) return;
  waits_.Add(Intern(RowOf(wait.process), wait_stack_.Of(wait)), wait, begin_);
}

void WindowBuilder::SumUpThreads(ProcessKey process, const WaitWatch::Threads& threads) {
  main_loop_.Check();
  std::vector<WindowWaits::Weighed> given;
  const WaitTimes times =
      waits_.Take(process, threads, [&](const WindowWaits::Weighed& wait) { given.push_back(wait); });
  if (times == WaitTimes()) return;
  const uint32_t row = RowOf(process);
  for (const WindowWaits::Weighed& wait : given) {
    waited_.push_back({ThreadOf(row, wait.tid, wait.comm), wait.stack, wait.ns});
  }
  const auto add = [&](FrameId mark, uint64_t ns) {
    if (ns != 0) waited_.push_back({ThreadOf(row, 0, ""), Intern(row, std::span(&mark, 1)), ns});
  };
  add(wait_stack_.ShorterThan(min_wait_ns_), times.short_ns);
  add(wait_stack_.NotTold(), times.untold_ns);
  AddTimes(rows_[row].process.waits, times);
}

void WindowBuilder::Describe(const Process& process) {
  main_loop_.Check();
  if (Has(process.key)) RowOf(process);
}

void WindowBuilder::SetRuntime(ProcessKey key, std::string version, bool hooked) {
  main_loop_.Check();
  const auto row = rows_of_.find(key);
  if (row == rows_of_.end()) return;
  rows_[row->second].process.runtime = std::move(version);
  rows_[row->second].process.hooked = hooked;
}

void WindowBuilder::SetLabels(ProcessKey key, ProcessLabels labels) {
  main_loop_.Check();
  const auto row = rows_of_.find(key);
  if (row != rows_of_.end()) rows_[row->second].process.labels = std::move(labels);
}

void WindowBuilder::SetExited(ProcessKey key) {
  main_loop_.Check();
  const auto row = rows_of_.find(key);
  if (row != rows_of_.end()) rows_[row->second].process.exited = true;
}

void WindowBuilder::AddThreads(ProfileModelBuilder& builder, std::vector<ThreadIndex>& indexes) const {
  for (const ThreadRow& thread : threads_) {
    const WindowProcess& process = rows_[thread.row].process;
    indexes.push_back(builder.Thread({process.pid, thread.tid, builder.String(process.comm),
                                      builder.String(thread.name), builder.String(process.container_id)}));
  }
}

absl::StatusOr<ProfileModel> WindowBuilder::CpuModel(ProfileMeta meta) const {
  ProfileModelBuilder builder;
  builder.meta() = std::move(meta);
  std::vector<ThreadIndex> threads;
  AddThreads(builder, threads);
  StackImporter importer(frames_, *stacks_, builder);
  for (const SampleRow& row : samples_) {
    builder.Add({row.time_ns, threads[row.thread], importer.Stack(row.stack), row.state, row.weight_ns,
                 builder.Link(links_.at(row.link))});
  }
  if (sources_ != nullptr) AddSources(*sources_, builder);
  return std::move(builder).Build();
}

absl::StatusOr<ProfileModel> WindowBuilder::ModelOf(ProfileMeta meta, const std::vector<WeighedStack>& stacks) const {
  ProfileModelBuilder builder;
  builder.meta() = std::move(meta);
  if (stacks.empty()) return std::move(builder).Build();
  std::vector<ThreadIndex> threads;
  AddThreads(builder, threads);
  StackImporter importer(frames_, *stacks_, builder);
  for (const WeighedStack& row : stacks) {
    builder.Add({.thread = threads[row.thread], .stack = importer.Stack(row.stack), .weight = row.weight});
  }
  if (sources_ != nullptr) AddSources(*sources_, builder);
  return std::move(builder).Build();
}

void WindowBuilder::CountFrames(Account& account) {
  // Labels were given in the order of the rows.
  for (StackId id = 0; id < stacks_->size(); ++id) {
    const uint64_t times = stacks_->count(id);
    if (times == 0) continue;
    const StackView stack = stacks_->stack(id);
    WindowProcess& process = rows_[stack.label].process;
    for (const FrameId frame_id : stack.frames) {
      const Frame& frame = frames_.at(frame_id);
      account.CountFrame(frame, times);
      FrameCounts* counts = nullptr;
      switch (frame.kind) {
        case FrameKind::kKernel:
          counts = &process.kernel;
          break;
        case FrameKind::kNative:
          counts = &process.native;
          break;
        case FrameKind::kJit:
        case FrameKind::kR2r:
        case FrameKind::kAot:
          counts = &process.managed;
          break;
        case FrameKind::kMark:
        case FrameKind::kType:
        case FrameKind::kRole:
          continue;
      }
      (frame.named() ? counts->named : counts->unnamed) += times;
    }
  }
}

WindowBuilder::Taken WindowBuilder::Take(uint64_t duration_ns) {
  main_loop_.Check();
  Taken taken;
  Window& window = taken.window;
  window.begin_unix_ns = begin_unix_ns_;
  CountFrames(window.account);
  ProfileMeta meta;
  meta.start_unix_ns = begin_unix_ns_;
  meta.duration_ns = duration_ns;
  meta.whole_host = true;
  const auto of_view = [&](ProfileView view) {
    ProfileMeta copy = meta;
    copy.view = view;
    copy.unit = WindowUnitOf(view);
    return copy;
  };
  absl::StatusOr<ProfileModel> cpu = CpuModel(of_view(ProfileView::kCpu));
  absl::StatusOr<ProfileModel> suspend_delay = ModelOf(of_view(ProfileView::kSuspendDelay), delays_);
  absl::StatusOr<ProfileModel> jit = ModelOf(of_view(ProfileView::kJit), compiled_);
  absl::StatusOr<ProfileModel> allocations = ModelOf(of_view(ProfileView::kAllocations), allocated_);
  absl::StatusOr<ProfileModel> waits = ModelOf(of_view(ProfileView::kOffCpu), waited_);
  PrunePauses();
  std::sort(pauses_.begin(), pauses_.end(),
            [](const WindowPause& a, const WindowPause& b) { return a.requested_unix_ns < b.requested_unix_ns; });
  std::sort(methods_.begin(), methods_.end(),
            [](const WindowMethod& a, const WindowMethod& b) { return a.total_ns > b.total_ns; });
  if (methods_.size() > Window::kMaxMethods) {
    for (size_t i = Window::kMaxMethods; i < methods_.size(); ++i) methods_left_out_ += methods_[i].count;
    methods_.resize(Window::kMaxMethods);
  }
  for (Row& row : rows_) window.processes.push_back(std::move(row.process));
  std::map<uint32_t, ProcessLabels> labels = LabelsByPid(window.processes);
  for (WindowProcess& process : window.processes) process.labels = labels[process.pid];
  window.pauses = std::move(pauses_);
  window.methods = std::move(methods_);
  window.pauses_left_out = pauses_left_out_;
  window.methods_left_out = methods_left_out_;
  window.account.traces["left_out"] = links_.left_out();
  Clear();
  const auto take = [&](ProfileView view, absl::StatusOr<ProfileModel>& model, ProfileModel& into) {
    if (model.ok()) {
      into = *std::move(model);
    } else {
      taken.lost.emplace_back(view, model.status());
    }
  };
  take(ProfileView::kCpu, cpu, window.cpu);
  take(ProfileView::kSuspendDelay, suspend_delay, window.suspend_delay);
  take(ProfileView::kJit, jit, window.jit);
  take(ProfileView::kAllocations, allocations, window.allocations);
  take(ProfileView::kOffCpu, waits, window.waits);
  return taken;
}

}  // namespace clrsampler
