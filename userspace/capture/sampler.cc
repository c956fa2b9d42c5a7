#include "capture/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "capture/allocation_sums.h"
#include "capture/cpu_list.h"
#include "capture/drop_counters.h"
#include "capture/kernel_types.h"
#include "capture/libbpf_log.h"
#include "capture/load_error.h"
#include "capture/merge_by_time.h"
#include "capture/return_probes.h"
#include "capture/sampling_period.h"
#include "capture/uprobe.h"
#include "clrsampler.skel.h"
#include "formats/proc/stat_text.h"
#include "os/file_io.h"
#include "os/pid_namespace.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kRecordBytes = 6144;
constexpr uint64_t kStallSeconds = 2;
constexpr uint64_t kMinRingBytes = 1 << 20;
constexpr uint64_t kMaxRingBytes = 64 << 20;

// `value`: what `map` says of the process. `full`: the error where there is no room; `doing`: of others, before its id.
absl::Status PutForProcess(const bpf_map* map, pid_t tgid, const void* value, absl::string_view full,
                           absl::string_view doing) {
  const auto key = static_cast<uint32_t>(tgid);
  if (bpf_map_update_elem(bpf_map__fd(map), &key, value, BPF_ANY) == 0) return absl::OkStatus();
  if (errno == E2BIG || errno == ENOMEM) return absl::ResourceExhaustedError(full);
  return ErrnoError(errno, absl::StrCat(doing, " process ", tgid));
}

void RemoveForProcess(const bpf_map* map, pid_t tgid) {
  const auto key = static_cast<uint32_t>(tgid);
  bpf_map_delete_elem(bpf_map__fd(map), &key);
}

// THREAD_SIZE: 16 KiB on x86-64 (arch/x86/include/asm/page_64_types.h) and arm64, there at least one page
// (arch/arm64/include/asm/memory.h).
uint32_t KernelStackBytes() {
  constexpr uint32_t kUsual = 16 * 1024;
#if defined(__aarch64__)
  return std::max(kUsual, static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
#else
  return kUsual;
#endif
}

uint64_t MemoryOfMap(int fd) {
  const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat("/proc/self/fdinfo/", fd), 4096);
  if (!text.ok()) return 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    uint64_t bytes = 0;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
    if (fields.size() == 2 && fields[0] == "memlock" && absl::SimpleAtoi(fields[1], &bytes)) return bytes;
  }
  return 0;
}

}  // namespace

void RaiseLockedMemoryLimit() {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0) return;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_MEMLOCK, &limit);
}

uint64_t DefaultRingBytes(int cpus, int frequency_hz) {
  const uint64_t bytes =
      static_cast<uint64_t>(cpus) * static_cast<uint64_t>(frequency_hz) * kRecordBytes * kStallSeconds;
  return std::bit_ceil(std::clamp(bytes, kMinRingBytes, kMaxRingBytes));
}

void Sampler::SkeletonDeleter::operator()(clrsampler_bpf* skeleton) const { clrsampler_bpf__destroy(skeleton); }

void Sampler::LinkDeleter::operator()(bpf_link* link) const { bpf_link__destroy(link); }

Sampler::~Sampler() { StopSampling(); }

absl::StatusOr<std::unique_ptr<Sampler>> Sampler::Create(const SamplerOptions& options, const FeatureReport& features) {
  RETURN_IF_ERROR(features.Usable());
  if (options.max_frames > WIRE_MAX_USER_FRAMES || options.gap_words > WIRE_MAX_GAP_WORDS ||
      options.tail_words > WIRE_MAX_TAIL_WORDS || options.broken_tail_words > WIRE_MAX_TAIL_WORDS) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", WIRE_MAX_USER_FRAMES, " frames, ", WIRE_MAX_GAP_WORDS,
                                                   " words per gap and ", WIRE_MAX_TAIL_WORDS,
                                                   " behind the last frame"));
  }
  if (options.frequency_hz < 1) return absl::InvalidArgumentError("the frequency must be at least 1 Hz");
  std::unique_ptr<Sampler> sampler(new Sampler(options));
  const LibbpfLog log;
  RaiseLockedMemoryLimit();
  absl::Status loaded =
      sampler->Load(features, /*task_storage=*/options.waits && !options.wait_table && TaskStorageIsSafe());
  if (!loaded.ok()) {
    const std::string said = log.Tail(6);
    if (said.empty()) return loaded;
    absl::Status detailed(loaded.code(), absl::StrCat(loaded.message(), "\n", said));
    return WithHint(detailed, HintOf(loaded));
  }
  return sampler;
}

// The sizes of the rings, by the options and the CPUs.
absl::Status Sampler::SizeRings(int possible_cpus, bool hook_ring) {
  // The ring by the CPUs that can fill it: virtual machines announce hundreds of possible ones.
  const absl::StatusOr<std::vector<int>> online = OnlineCpus();
  const int filling = online.ok() && !online->empty() ? static_cast<int>(online->size()) : possible_cpus;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  ring_bytes_ = options_.ring_bytes == 0 ? DefaultRingBytes(filling, options_.frequency_hz)
                                         : std::bit_ceil(std::max<uint64_t>(options_.ring_bytes, 4096));
  ring_bytes_ = std::max(ring_bytes_, page);
  hook_ring_bytes_ = hook_ring ? std::max(std::bit_ceil(options_.hook_ring_bytes), page) : page;
  if (std::max(ring_bytes_, hook_ring_bytes_) > (uint64_t{1} << 31)) {
    return absl::InvalidArgumentError("a ring buffer has at most 2 GiB");
  }
  bpf_map__set_max_entries(skeleton_->maps.samples, static_cast<uint32_t>(ring_bytes_));
  bpf_map__set_max_entries(skeleton_->maps.hook_records, static_cast<uint32_t>(hook_ring_bytes_));
  return absl::OkStatus();
}

// Maps that are not wanted have one entry.
void Sampler::SizeMaps(uint32_t slots, bool stacks_of_hooks, bool hooks, uint32_t pid_namespace) {
  auto& maps = skeleton_->maps;
  bpf_map__set_max_entries(maps.scratch_by_cpu, stacks_of_hooks ? 2 * slots : slots);
  bpf_map__set_max_entries(maps.tracked_processes,
                           options_.filter_processes ? std::max(options_.tracked_limit, 1u) : 1);
  if (!hooks) bpf_map__set_max_entries(maps.event_rate_limits, 1);
  if (!hooks || (!options_.filter_processes && pid_namespace == 0)) bpf_map__set_max_entries(maps.hook_others, 1);
  if (!options_.async_objects) bpf_map__set_max_entries(maps.async_layouts, 1);
  if (options_.allocation_hooks) return;
  bpf_map__set_max_entries(maps.allocation_sums, 1);
  bpf_map__set_max_entries(maps.allocations_pending, 1);
}

void Sampler::SetConstants(const FeatureReport& features, uint32_t slots, uint32_t pid_namespace) {
  auto& constants = *skeleton_->rodata;
  constants.gap_words = options_.gap_words;
  constants.tail_words = options_.tail_words;
  constants.broken_tail_words = options_.broken_tail_words;
  constants.word_limit = options_.word_limit;
  constants.max_frames = options_.max_frames;
  constants.pid_namespace_inode = pid_namespace;
  constants.filter_processes = options_.filter_processes;
  constants.follow_children = options_.follow_children;
  constants.async_stacks = options_.async_objects;
  constants.wake_bytes = static_cast<uint32_t>(ring_bytes_ / 4);
  constants.hook_wake_bytes = static_cast<uint32_t>(hook_ring_bytes_ / 4);
  constants.kernel_stack_bytes = KernelStackBytes();
  constants.first_hook_slot = slots;
  constants.hook_hits_a_second = options_.hook_hits_a_second;
  constants.hook_hits_at_once = options_.hook_hits_at_once;
  constants.allocation_thinning = std::max(options_.allocation_thinning, 1u);
  constants.use_task_pt_regs = features.Has(kFeatureTaskPtRegs);
}

// Chooses the programs that are loaded.
void Sampler::SelectPrograms(const FeatureReport& features, uint32_t pid_namespace) {
  program_ = pid_namespace == 0 && features.Has(kFeatureTaskPtRegs) ? skeleton_->progs.cpu_sample
                                                                    : skeleton_->progs.cpu_sample_general;
  bpf_program__set_autoload(program_, true);
  bpf_program__set_autoload(skeleton_->progs.thread_created, options_.thread_creations);
  for (int hook = 1; hook < WIRE_HOOK_COUNT; ++hook) {
    for (const HookForm form : kHookForms) {
      if (bpf_program* program = HookProgram(static_cast<wire_hook>(hook), form)) {
        bpf_program__set_autoload(program, true);
        bpf_program__set_expected_attach_type(program, static_cast<bpf_attach_type>(UprobeAttachType()));
      }
    }
  }
}

absl::Status Sampler::Configure(const FeatureReport& features, bool task_storage) {
  ASSIGN_OR_RETURN(const int possible, PossibleCpuLimit());
  const bool stacks =
      options_.jit_stacks || options_.allocation_hooks || options_.exception_hooks || options_.thread_creations;
  const bool hooks = options_.suspension_hooks || options_.jit_hooks || stacks;
  RETURN_IF_ERROR(SizeRings(possible, hooks || options_.waits));
  const auto slots = static_cast<uint32_t>(possible);
  const uint32_t pid_namespace = options_.pid_namespace_inode.value_or(OwnPidNamespaceInode().value_or(0));
  SizeMaps(slots, stacks, hooks, pid_namespace);
  SetConstants(features, slots, pid_namespace);
  waits_.emplace(*skeleton_,
                 WaitTracerOptions{.wanted = options_.waits,
                                   .min_wait_ns = options_.min_wait_ns,
                                   .waker_stacks = options_.waker_stacks,
                                   .thinning = options_.wait_thinning,
                                   .looks = options_.wait_looks,
                                   .only_process = pid_namespace == 0 ? options_.only_process : 0,
                                   .task_storage = task_storage,
                                   .table_threads = options_.wait_table_threads},
                 slots);
  has_cookies_ = options_.allocation_hooks && HasAttachCookie();
  SelectPrograms(features, pid_namespace);
  return absl::OkStatus();
}

bpf_program* Sampler::HookProgram(wire_hook hook, HookForm form) const {
  const auto& programs = skeleton_->progs;
  const bool of_jit = hook == WIRE_HOOK_COMPILE || hook == WIRE_HOOK_COMPILED;
  if (hook == WIRE_HOOK_ALLOCATED || form == HookForm::kNoted) return AllocationProgram(hook, form);
  if (hook == WIRE_HOOK_THROWN) return ExceptionProgram(form);
  if (of_jit ? !options_.jit_hooks : !options_.suspension_hooks) return nullptr;
  if (hook == WIRE_HOOK_RESTARTED && !options_.resumed_hook) return nullptr;
  const bool plain = form == HookForm::kPlain;
  switch (hook) {
    case WIRE_HOOK_SUSPEND:
      return plain ? programs.hook_suspend : nullptr;
    case WIRE_HOOK_SUSPENDED:
      return plain ? programs.hook_suspended : nullptr;
    case WIRE_HOOK_RESTART:
      return plain ? programs.hook_restart : nullptr;
    case WIRE_HOOK_RESTARTED:
      return plain ? programs.hook_restarted : nullptr;
    case WIRE_HOOK_GC_START:
      return plain ? programs.hook_gc_start : form == HookForm::kMember ? programs.hook_gc_start_member : nullptr;
    case WIRE_HOOK_GC_END:
      return plain ? programs.hook_gc_end : form == HookForm::kMember ? programs.hook_gc_end_member : nullptr;
    case WIRE_HOOK_COMPILE:
      return plain ? programs.hook_compile : nullptr;
    case WIRE_HOOK_COMPILED:
      if (plain) return options_.jit_stacks ? programs.hook_compiled_with_stack : programs.hook_compiled;
      if (form != HookForm::kEntryOnFrame) return nullptr;
      return options_.jit_stacks ? programs.hook_compiled_on_frame_with_stack : programs.hook_compiled_on_frame;
    case WIRE_HOOK_ALLOCATED:
    case WIRE_HOOK_THROWN:
    case WIRE_HOOK_COUNT:
      break;
  }
  return nullptr;
}

bpf_program* Sampler::AllocationProgram(wire_hook hook, HookForm form) const {
  if (!options_.allocation_hooks) return nullptr;
  switch (form) {
    case HookForm::kNoted:
      return hook == WIRE_HOOK_SUSPEND ? skeleton_->progs.hook_suspend_noted : nullptr;
    case HookForm::kPlain:
      return skeleton_->progs.hook_allocated;
    case HookForm::kMember:
      return skeleton_->progs.hook_allocated_member;
    case HookForm::kInside:
      return has_cookies_ ? skeleton_->progs.hook_allocated_inside : nullptr;
    case HookForm::kEntryOnFrame:
    case HookForm::kCrawlFrame:
      break;
  }
  return nullptr;
}

bpf_program* Sampler::ExceptionProgram(HookForm form) const {
  if (!options_.exception_hooks) return nullptr;
  if (form == HookForm::kPlain) return skeleton_->progs.hook_thrown;
  return form == HookForm::kCrawlFrame ? skeleton_->progs.hook_thrown_event : nullptr;
}

// The kernel finds a process's memory by its first thread (uprobe_multi_link_filter, kernel/trace/bpf_trace.c): where
// that has ended before the others, a bound probe is never planted.
bool HasFirstThread(pid_t process) {
  const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat("/proc/", process, "/stat"), 4096);
  const absl::StatusOr<StatText> stat = text.ok() ? ParseStat(*text) : text.status();
  return stat.ok() && stat->state != 'Z';
}

absl::StatusOr<UniqueFd> Sampler::AttachHook(const HookPlace& place, const std::string& path) {
  const bpf_program* program = HookProgram(place.hook, place.form);
  if (program == nullptr && place.form == HookForm::kInside) {
    return WithHint(absl::UnimplementedError("this kernel's probes can't be told apart"), "Linux 5.15 or newer");
  }
  if (program == nullptr) return absl::InvalidArgumentError("no program for this hook");
  const bool at_return = place.hook == WIRE_HOOK_SUSPENDED || place.hook == WIRE_HOOK_RESTARTED;
  if (at_return) RETURN_IF_ERROR(CheckReturnProbes());
  return OpenUprobe({.path = path,
                     .file_offset = place.offset,
                     .at = at_return ? UprobeAt::kReturn : UprobeAt::kEntry,
                     .program_fd = bpf_program__fd(program),
                     .process = HasFirstThread(options_.only_process) ? options_.only_process : 0,
                     .cookie = place.cookie});
}

std::vector<HitsOfOthers> Sampler::HookHitsOfOthers() const {
  if (bpf_map__max_entries(skeleton_->maps.hook_others) != WIRE_MAX_HOOK_OTHERS) return {};  // there are none
  std::vector<wire_hook_other> who(WIRE_MAX_HOOK_OTHERS);
  std::vector<uint64_t> hits(WIRE_MAX_HOOK_OTHERS);
  uint32_t batch = 0, count = WIRE_MAX_HOOK_OTHERS;
  LIBBPF_OPTS(bpf_map_batch_opts, options);
  // ENOENT: these are all.
  if (bpf_map_lookup_batch(bpf_map__fd(skeleton_->maps.hook_others), nullptr, &batch, who.data(), hits.data(), &count,
                           &options) != 0 &&
      errno != ENOENT) {
    return {};
  }
  std::vector<HitsOfOthers> others;
  for (uint32_t i = 0; i < count; ++i) others.push_back({who[i], hits[i]});
  return others;
}

uint32_t Sampler::HookHitsMissed(pid_t tgid) const {
  const auto key = static_cast<uint32_t>(tgid);
  wire_event_rate_limit limit{};
  const int found = bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.event_rate_limits), &key, &limit);
  return found == 0 ? limit.missed : 0;
}

void Sampler::ReadAllocationSum(pid_t tgid) {
  const int sums = bpf_map__fd(skeleton_->maps.allocation_sums);
  if (const auto record = ReadSum(sums, static_cast<uint32_t>(tgid))) sums_told_.push_back(*record);
}

absl::Status Sampler::Load(const FeatureReport& features, bool task_storage) {
  waits_.reset();
  thread_creations_.reset();
  skeleton_.reset();
  absl::StatusOr<KernelTypes> types = KernelTypes::Create();
  if (types.ok()) {
    LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = types->path().c_str());
    skeleton_.reset(clrsampler_bpf__open_opts(&options));
    // Whatever the failure is, libbpf then finds the types in its own way.
    if (skeleton_ != nullptr && !types->Fill(bpf_object__btf(skeleton_->obj)).ok()) skeleton_.reset();
  }
  if (skeleton_ == nullptr) skeleton_.reset(clrsampler_bpf__open());
  if (skeleton_ == nullptr) return ErrnoError(errno, "opening the BPF object");
  RETURN_IF_ERROR(Configure(features, task_storage));
  const int error = clrsampler_bpf__load(skeleton_.get());
  if (error != 0) return LoadError(-error, "loading the BPF programs", features.lockdown);

  ASSIGN_OR_RETURN(ring_, RingReader::Map(ring_fd(), ring_bytes_));
  ASSIGN_OR_RETURN(hook_ring_, RingReader::Map(hook_ring_fd(), hook_ring_bytes_));
  transient_code_.emplace(bpf_map__fd(skeleton_->maps.transient_code), bpf_map__fd(skeleton_->maps.transient_heaps));
  events_ = std::make_unique<CpuEvents>([this](int cpu) { return OpenAndAttach(cpu); }, "sampling the CPUs");
  return absl::OkStatus();
}

int Sampler::OpenAndAttach(int cpu) const {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config =
      PERF_COUNT_SW_CPU_CLOCK;  // a timer interrupt: works in every virtual machine, and is never an NMI
  // It is given as a rate, which the kernel compares with its limit. A clock event then has a period, however it was
  // asked for (perf_swevent_init_hrtimer, kernel/events/core.c).
  attributes.freq = 1;
  attributes.sample_freq = static_cast<uint64_t>(options_.frequency_hz);
  attributes.disabled = 1;
  const int opened = OpenCpuEvent(attributes, cpu);
  if (opened < 0) return opened;
  // The ioctl and not a BPF link: it is there in every kernel, and the program goes with the event.
  uint64_t period_ns = this->period_ns();
  if (ioctl(opened, PERF_EVENT_IOC_PERIOD, &period_ns) != 0 ||
      ioctl(opened, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(program_)) != 0 ||
      ioctl(opened, PERF_EVENT_IOC_ENABLE, 0) != 0) {
    const int error = errno;
    close(opened);
    return -error;
  }
  return opened;
}

absl::Status Sampler::Start() {
  RaiseOpenFileLimit();
  started_ = true;
  ASSIGN_OR_RETURN(const std::vector<int> online, OnlineCpus());
  RETURN_IF_ERROR(events_->Follow(online, /*all_or_nothing=*/true));
  if (options_.thread_creations) RETURN_IF_ERROR(AttachThreadCreations());
  return waits_->Start(clock_.Now(), online);
}

absl::Status Sampler::AttachThreadCreations() {
  thread_creations_.reset(bpf_program__attach(skeleton_->progs.thread_created));
  if (thread_creations_ != nullptr) return absl::OkStatus();
  return ErrnoError(errno, "attaching to the kernel's tracepoint of new threads");
}

absl::Status Sampler::SetFrequency(int frequency_hz) {
  if (frequency_hz < 1) return absl::InvalidArgumentError("the frequency must be at least 1 Hz");
  options_.frequency_hz = frequency_hz;
  uint64_t period_ns = this->period_ns();
  absl::Status changed;
  for (const auto& [cpu, fd] : events_->events()) {
    if (ioctl(fd.get(), PERF_EVENT_IOC_PERIOD, &period_ns) != 0) {
      changed.Update(ErrnoError(errno, absl::StrCat("setting the rate of CPU ", cpu)));
    }
  }
  return changed;
}

absl::Status Sampler::AttachNewCpus(std::span<const int> online, CpuPulse::BusyNs busy_ns) {
  if (!started_) return absl::OkStatus();
  std::vector<uint64_t> hits;
  for (const wire_counters& counters : CountersByCpu()) hits.push_back(counters.hits);
  const absl::StatusOr<std::vector<int>> possible = PossibleCpus();
  if (!possible.ok()) return possible.status();
  silent_ = pulse_.Silent(clock_.Now().ns, cpus(), ByCpuNumber(hits, *possible), period_ns(), busy_ns);
  absl::Status followed = events_->Follow(online, /*all_or_nothing=*/false, silent_);
  followed.Update(waits_->AttachNewCpus(online, silent_));
  return followed;
}

void Sampler::StopSampling() {
  if (!started_) return;
  started_ = false;
  waits_->Stop();
  thread_creations_.reset();
  // Disabling waits for the CPU; closing alone may leave the last hit running for a moment.
  for (const auto& [cpu, event] : events_->events()) ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0);
  events_->CloseAll();
}

absl::Status Sampler::Track(pid_t tgid) {
  if (!options_.filter_processes) return absl::OkStatus();
  const uint8_t value = 1;
  return PutForProcess(skeleton_->maps.tracked_processes, tgid, &value,
                       absl::StrCat("more than ", options_.tracked_limit, " processes to follow"), "following");
}

void Sampler::Untrack(pid_t tgid) { RemoveForProcess(skeleton_->maps.tracked_processes, tgid); }

absl::Status Sampler::SetAsyncLayout(pid_t tgid, const wire_async_layouts& layout) {
  return PutForProcess(skeleton_->maps.async_layouts, tgid, &layout,
                       "more .NET processes than the sampler can follow async callers of",
                       "telling the sampler of async code of");
}

void Sampler::ForgetAsyncLayout(pid_t tgid) { RemoveForProcess(skeleton_->maps.async_layouts, tgid); }

absl::Status Sampler::SetThreadVariable(pid_t tgid, const wire_thread_variable& variable) {
  RETURN_IF_ERROR(PutForProcess(skeleton_->maps.thread_contexts, tgid, &variable,
                                "more processes publish trace ids than the sampler can follow",
                                "telling the sampler of trace ids of"));
  skeleton_->bss->threads_publish = 1;
  return absl::OkStatus();
}

void Sampler::ForgetThreadVariable(pid_t tgid) { RemoveForProcess(skeleton_->maps.thread_contexts, tgid); }

int Sampler::ring_fd() const { return bpf_map__fd(skeleton_->maps.samples); }

int Sampler::hook_ring_fd() const { return bpf_map__fd(skeleton_->maps.hook_records); }

void Sampler::Drain(RecordFunction on_record) {
  // The order matters: reports from before one of these samples are there now.
  ring_.Begin();
  hook_ring_.Begin();
  // Work on the reports of hooks can take long. The samples' ring gets no fuller meanwhile than an eighth.
  const auto samples_press = [this] {
    if (ring_.waiting() < ring_bytes_ / 8) return false;
    ring_.End();
    ring_.Begin();
    return true;
  };
  MergeByTime(hook_ring_, ring_, samples_press, on_record);
  hook_ring_.End();
  ring_.End();
  for (const wire_allocation& sum : std::exchange(sums_told_, {})) on_record(std::as_bytes(std::span(&sum, 1)));
  for (const std::vector<uint64_t>& record : waits_->TakeOpenWaits()) on_record(std::as_bytes(std::span(record)));
}

std::vector<wire_counters> Sampler::CountersByCpu() const {
  const int cpus = libbpf_num_possible_cpus();
  // The kernel writes one value per possible CPU, whatever their numbers.
  std::vector<wire_counters> values(cpus > 0 ? static_cast<size_t>(cpus) : 0);
  const uint32_t key = 0;
  if (values.empty() || bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.counters), &key, values.data()) != 0) {
    values.clear();
  }
  return values;
}

wire_counters Sampler::counters() const {
  const std::vector<wire_counters> values = CountersByCpu();
  return values.empty() ? last_counters_ : last_counters_ = SumCounters(values);
}

uint64_t Sampler::bpf_map_bytes() const {
  uint64_t bytes = 0;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, skeleton_->obj) bytes += MemoryOfMap(bpf_map__fd(map));
  return bytes;
}

}  // namespace clrsampler
