#include "capture/wait_tracer.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "capture/load_error.h"
#include "capture/stack_copy.h"
#include "clrsampler.skel.h"
#include "formats/proc/schedstat_text.h"
#include "formats/proc/status_text.h"
#include "os/file_io.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxThreads = 65'536;
// A CPU may keep so many entries of a table for itself (LOCAL_FREE_TARGET, kernel/bpf/bpf_lru_list.c).
constexpr uint32_t kEntriesKeptByCpu = 128;
constexpr uint64_t kUsualStackBytes = 32 << 10;
constexpr uint64_t kMaxStackBytes = 1 << 20;  // of one, as for `clrsampler stacks`

}  // namespace

// An event without a ring wakes nobody. This one is read by nobody either, so the kernel overwrites old records.
class WaitTracer::Page {
 public:
  explicit Page(int fd)
      : bytes_(2 * static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        map_(mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd, 0)) {}
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() {
    if (valid()) munmap(map_, bytes_);
  }
  bool valid() const { return map_ != MAP_FAILED; }

 private:
  const size_t bytes_;
  void* const map_;
};

bool TaskStorageIsSafe() {
  const std::unique_ptr<btf, decltype(&btf__free)> types(btf__load_vmlinux_btf(), btf__free);
  if (types == nullptr) return false;
  const int32_t id = btf__find_by_name_kind(types.get(), "bpf_local_storage_map", BTF_KIND_STRUCT);
  if (id < 0) return false;
  const btf_type* type = btf__type_by_id(types.get(), static_cast<uint32_t>(id));
  const btf_member* members = btf_members(type);
  return std::any_of(members, members + btf_vlen(type), [&](const btf_member& member) {
    const char* name = btf__name_by_offset(types.get(), member.name_off);
    // Both are fields that say which allocator a map has. The second has taken the place of the first.
    return name != nullptr && (absl::string_view(name) == "bpf_ma" || absl::string_view(name) == "use_kmalloc_nolock");
  });
}

void WaitTracer::LinkDeleter::operator()(bpf_link* link) const { bpf_link__destroy(link); }

WaitTracer::WaitTracer(clrsampler_bpf& skeleton, const WaitTracerOptions& options, uint32_t possible_cpus)
    : skeleton_(skeleton),
      wanted_(options.wanted),
      looks_(options.looks),
      alarms_([this](int cpu) { return OpenAlarm(cpu); }, "following waits") {
  auto& maps = skeleton.maps;
  const bool in_storage = options.wanted && options.task_storage;
  bpf_map__set_autocreate(maps.wait_storage, in_storage);
  const bool in_table = options.wanted && !in_storage;
  bpf_map__set_max_entries(maps.wait_times, in_table ? options.table_threads + possible_cpus * kEntriesKeptByCpu : 1);
  if (!options.wanted) return;
  bpf_map__set_max_entries(maps.wait_alarms, possible_cpus);
  auto& constants = *skeleton.rodata;
  constants.use_task_storage = in_storage;
  constants.wait_table_threads = options.table_threads;
  constants.only_tgid = static_cast<uint32_t>(options.only_process);
  constants.min_wait_ns = options.min_wait_ns;
  constants.take_waker_stacks = options.waker_stacks;
  constants.wait_thinning = std::max(options.thinning, 1u);
  auto& programs = skeleton.progs;
  for (bpf_program* program :
       {programs.wait_switch, programs.wait_waking, programs.wait_stack, programs.wait_threads}) {
    bpf_program__set_autoload(program, true);
  }
}

WaitTracer::~WaitTracer() { Stop(); }

int WaitTracer::OpenAlarm(int cpu) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_BPF_OUTPUT;
  attributes.sample_type = PERF_SAMPLE_RAW;
  attributes.sample_period = 1;
  attributes.wakeup_events = 1;
  const int fd = OpenCpuEvent(attributes, cpu);
  if (fd < 0) return fd;
  auto page = std::make_unique<Page>(fd);
  const uint32_t key = static_cast<uint32_t>(cpu);
  if (!page->valid() || bpf_map_update_elem(bpf_map__fd(skeleton_.maps.wait_alarms), &key, &fd, BPF_ANY) != 0) {
    const int error = errno;
    close(fd);
    return -error;
  }
  pages_[cpu] = std::move(page);
  return fd;
}

absl::Status WaitTracer::Start(MonotonicTime now, std::span<const int> online) {
  main_loop_.Check();
  if (!wanted_) return absl::OkStatus();
  RETURN_IF_ERROR(alarms_.Follow(online, /*all_or_nothing=*/true));
  skeleton_.bss->waits_began_ns = now.ns;
  auto& programs = skeleton_.progs;
  // The program that takes what the others leave is attached first.
  for (bpf_program* program : {programs.wait_stack, programs.wait_waking, programs.wait_switch}) {
    bpf_link* link = bpf_program__attach(program);
    if (link == nullptr) {
      const int error = errno;
      Stop();
      return LoadError(error, "following the scheduler", "");
    }
    links_.emplace_back(link);
  }
  threads_.reset(bpf_program__attach_iter(programs.wait_threads, nullptr));
  if (threads_ == nullptr) return LoadError(errno, "looking at threads", "");
  return absl::OkStatus();
}

absl::Status WaitTracer::AttachNewCpus(std::span<const int> online, std::span<const int> stopped) {
  main_loop_.Check();
  if (links_.empty()) return absl::OkStatus();
  return alarms_.Follow(online, /*all_or_nothing=*/false, stopped, [this](int cpu) { pages_.erase(cpu); });
}

std::vector<wire_open_wait> WaitTracer::ReadThreads() const {
  const UniqueFd iterator(bpf_iter_create(bpf_link__fd(threads_.get())));
  std::vector<wire_open_wait> threads;
  if (!iterator.valid()) return threads;
  size_t filled = 0;  // bytes
  while (threads.size() < kMaxThreads) {
    threads.resize(filled / sizeof(wire_open_wait) + 64);
    const auto room = std::as_writable_bytes(std::span(threads)).subspan(filled);
    const ssize_t got = read(iterator.get(), room.data(), room.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  threads.resize(filled / sizeof(wire_open_wait));
  return threads;
}

namespace {

std::vector<uint64_t> StackOf(const wire_open_wait& open) {
  wire_cpu_sample head{};
  head.header.kind = WIRE_WAIT_STACK;
  head.header.time_ns = open.wait.header.time_ns;
  head.tgid = open.wait.tgid;
  head.tid = open.wait.tid;
  head.process_start_ns = open.wait.process_start_ns;
  head.ip = open.ip;
  head.sp = open.sp;
  head.fp = open.fp;
  head.lr = open.lr;
  std::copy(std::begin(open.general), std::end(open.general), head.general);
  std::copy(std::begin(open.wait.comm), std::end(open.wait.comm), head.comm);
  head.flags = WIRE_SAMPLE_IN_KERNEL | WIRE_SAMPLE_LOOK;
  const size_t frames = std::min<size_t>(open.kernel_frames, WIRE_OPEN_KERNEL_FRAMES);
  const std::vector<uint64_t> kernel(open.kernel, open.kernel + frames);
  const StackMemory memory(open.wait.tid);
  const auto read = [&](uint64_t address, std::span<std::byte> into) { return memory.Read(address, into); };
  std::vector<uint64_t> record = RecordWithStack(head, kernel, read, kUsualStackBytes);
  wire_cpu_sample taken;
  std::memcpy(&taken, record.data(), sizeof taken);
  if (taken.stop == WIRE_STOP_END) return record;
  return RecordWithStack(head, kernel, read, kMaxStackBytes);
}

// As wire_open_wait has it, from what the kernel tells everybody; nullopt: the thread has ended.
std::optional<uint64_t> SwitchesOf(const wire_wait& wait) {
  const std::string folder = absl::StrCat("/proc/", wait.tgid, "/task/", wait.tid);
  const absl::StatusOr<std::string> text = ReadWholeFile(folder + "/status", kMaxStatusBytes);
  const absl::StatusOr<StatusText> status = text.ok() ? ParseStatus(*text) : text.status();
  if (!status.ok()) return std::nullopt;
  // Some kernels have no such file, nor the number in wire_open_wait.
  const absl::StatusOr<std::string> schedstat = ReadWholeFile(folder + "/schedstat", 256);
  return status->switches + (schedstat.ok() ? ArrivalsOf(*schedstat) : 0);
}

// The words of a thread's memory are its stack only if it has not run meanwhile. nullopt: it has.
std::optional<std::vector<uint64_t>> TakeStack(const wire_open_wait& open) {
  std::vector<uint64_t> stack;
  if (open.ip != 0) stack = StackOf(open);
  if (SwitchesOf(open.wait) != open.switches) return std::nullopt;
  return stack;
}

}  // namespace

void WaitTracer::KeepOpenWaits(MonotonicTime as_of) {
  for (wire_open_wait& open : ReadThreads()) {
    if (!EndAt(open, as_of)) continue;
    std::optional<std::vector<uint64_t>> stack = std::vector<uint64_t>();
    if (open.wait.blocked_weight != 0 || open.wait.runnable_weight != 0) stack = TakeStack(open);
    // A thread that has run has reported this wait, or has had the chance to: the look does not tell it.
    if (!stack) open.wait.blocked_weight = open.wait.runnable_weight = 0;
    Keep(open, std::move(stack).value_or(std::vector<uint64_t>()));
  }
}

void WaitTracer::Keep(const wire_open_wait& open, std::vector<uint64_t> stack) {
  wire_wait wait = open.wait;
  wait.header.kind = WIRE_WAIT;
  wait.header.size = sizeof wait;
  if (!stack.empty()) wait.flags |= WIRE_WAIT_HAS_STACK;
  std::vector<uint64_t>& record = open_waits_.emplace_back(sizeof wait / sizeof(uint64_t));
  std::memcpy(record.data(), &wait, sizeof wait);
  if (!stack.empty()) open_waits_.push_back(std::move(stack));
}

void WaitTracer::ReadOpenWaits(const OpenWaitQuery& query) {
  main_loop_.Check();
  if (threads_ == nullptr) return;
  std::vector<wire_open_wait> threads = ReadThreads();
  std::erase_if(threads, [&](wire_open_wait& open) {
    return (query.selects && !query.selects(open.wait.tgid)) || !TakeBack(open, query.as_of);
  });
  std::vector<std::vector<uint64_t>> stacks(threads.size());
  for (const size_t i : seen_.Choose(threads, query.most_stacks)) {
    stacks[i] = TakeStack(threads[i]).value_or(std::vector<uint64_t>());
    if (!stacks[i].empty()) seen_.Take(threads[i]);
  }
  seen_.EndLook();
  for (size_t i = 0; i < threads.size(); ++i) Keep(threads[i], std::move(stacks[i]));
}

void WaitTracer::Stop() {
  main_loop_.Check();
  // Waits that end meanwhile are still reported.
  if (threads_ != nullptr && !looks_) KeepOpenWaits(SystemClock().Now());
  threads_.reset();
  while (!links_.empty()) links_.pop_back();  // the last one first
  alarms_.CloseAll();
  pages_.clear();
}

}  // namespace clrsampler
