#include "capture/side_band.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "capture/cpu_list.h"
#include "os/clock.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMinSideBandBytes = 32 * 1024;

perf_event_attr SideBandAttributes(size_t ring_bytes) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.sample_period = 1;
  attributes.sample_type = kSideBandSampleType;
  attributes.sample_id_all = 1;
  attributes.disabled = 1;
  attributes.mmap = 1;  // executable mappings only: mmap_data stays 0
  attributes.mmap2 = 1;
  attributes.comm = 1;
  attributes.comm_exec = 1;
  attributes.task = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.watermark = 1;
  attributes.wakeup_watermark = static_cast<uint32_t>(ring_bytes / 4);
  return attributes;
}

}  // namespace

struct SideBand::Ring {
  void* map = MAP_FAILED;
  size_t map_bytes = 0;
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (map != MAP_FAILED) munmap(map, map_bytes);
  }
};

SideBand::SideBand(size_t ring_bytes)
    : ring_bytes_(ring_bytes), events_([this](int cpu) { return OpenRing(cpu); }, "following processes") {}

SideBand::~SideBand() { Stop(); }

// The first page of the mapping is perf_event_mmap_page, then come the data.
int SideBand::OpenRing(int cpu) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int fd = OpenCpuEvent(SideBandAttributes(ring_bytes_), cpu);
  if (fd < 0) return fd;
  auto ring = std::make_unique<Ring>();
  int error = 0;
  while (true) {
    ring->map_bytes = page + ring_bytes_;
    ring->map = mmap(nullptr, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring->map != MAP_FAILED) break;
    error = errno;
    // EPERM: more than kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK allow together. Smaller rings for all from now on.
    if (error != EPERM || ring_bytes_ / 2 < std::max(kMinSideBandBytes, page)) {
      close(fd);
      return -error;
    }
    ring_bytes_ /= 2;
  }
  epoll_event wanted{.events = EPOLLIN, .data = {.fd = fd}};
  if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0 || epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &wanted) != 0) {
    error = errno;
    close(fd);
    return -error;
  }
  rings_[cpu] = std::move(ring);
  return fd;
}

absl::Status SideBand::Start() {
  main_loop_.Check();
  RaiseOpenFileLimit();
  poll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!poll_.valid()) return ErrnoError(errno, "epoll_create1");
  ASSIGN_OR_RETURN(const std::vector<int> online, OnlineCpus());
  absl::Status followed = events_.Follow(online, /*all_or_nothing=*/true);
  if (!followed.ok()) rings_.clear();
  return followed;
}

absl::Status SideBand::AttachNewCpus(std::span<const int> online, std::span<const int> stopped) {
  main_loop_.Check();
  if (!poll_.valid()) return absl::OkStatus();
  const std::vector<int> before = events_.cpus();
  const absl::Status followed = events_.Follow(online, /*all_or_nothing=*/false, stopped, [this](int cpu) {
    const auto ring = rings_.find(cpu);
    if (ring == rings_.end()) return;
    ReadOne(*ring->second);  // events that it still holds wait with the others
    rings_.erase(ring);
  });
  // An exec that such a CPU ran before is told by nobody.
  for (const auto& [cpu, ring] : rings_) {
    const bool is_new = std::ranges::find(before, cpu) == before.end();
    if (is_new || std::ranges::find(stopped, cpu) != stopped.end()) {
      pending_.push_back({.kind = SideBandKind::kLost, .time = SystemClock().Now(), .cpu = cpu});
    }
  }
  return followed;
}

void SideBand::Stop() {
  main_loop_.Check();
  // The mappings keep rings and events alive, so closing alone would not stop anything.
  for (const auto& [cpu, event] : events_.events()) ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0);
  events_.CloseAll();
  poll_.reset();
}

void SideBand::ReadOne(Ring& ring) {
  auto* control = static_cast<perf_event_mmap_page*>(ring.map);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const std::span<const std::byte> data(static_cast<const std::byte*>(ring.map) + page, ring.map_bytes - page);
  // The kernel is told how far we are only after everything was copied out of the ring (tools/lib/perf/mmap.c).
  const uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
  const uint64_t tail =
      ReadPerfRing(data, control->data_tail, head, &counters_.damaged, [this](std::span<const std::byte> record) {
        auto event = ParseSideBandRecord(record);
        if (!event.ok()) {
          ++counters_.damaged;
        } else if (event->has_value()) {
          ++counters_.events;
          counters_.lost += (*event)->lost;
          pending_.push_back(**std::move(event));
        }
      });
  __atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
}

void SideBand::Drain(MonotonicTime up_to, absl::FunctionRef<void(const SideBandEvent&)> on_event) {
  main_loop_.Check();
  if (poll_.valid()) {
    epoll_event ignored[16];
    epoll_wait(poll_.get(), ignored, 16, 0);  // takes the wake-ups back: all rings are read now
  }
  for (auto& [cpu, ring] : rings_) ReadOne(*ring);
  // Stable: events of one CPU with the same time keep their order (fork before the child's comm).
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const SideBandEvent& a, const SideBandEvent& b) { return a.time < b.time; });
  const auto end =
      std::find_if(pending_.begin(), pending_.end(), [&](const SideBandEvent& event) { return event.time > up_to; });
  for (auto event = pending_.begin(); event != end; ++event) on_event(*event);
  pending_.erase(pending_.begin(), end);
}

}  // namespace clrsampler
