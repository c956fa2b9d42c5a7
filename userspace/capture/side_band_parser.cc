#include "capture/side_band_parser.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// The trailer of each record for kSideBandSampleType.
struct SampleId {
  uint32_t pid, tid;
  uint64_t time;
  uint32_t cpu, reserved;
};
struct TaskBody {  // PERF_RECORD_FORK, PERF_RECORD_EXIT
  uint32_t pid, parent_pid, tid, parent_tid;
  uint64_t time;
};
struct CommBody {
  uint32_t pid, tid;  // then the name
};
struct Mmap2Body {
  uint32_t pid, tid;
  uint64_t start, length, page_offset;
  uint32_t device_major, device_minor;
  uint64_t inode, inode_generation;
  uint32_t protection, flags;  // then the path
};
struct LostBody {
  uint64_t id, lost;
};

template <typename Body>
bool Take(std::span<const std::byte>& bytes, Body& body) {
  if (bytes.size() < sizeof(Body)) return false;
  std::memcpy(&body, bytes.data(), sizeof(Body));
  bytes = bytes.subspan(sizeof(Body));
  return true;
}

std::string TextUpToNul(std::span<const std::byte> bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  return std::string(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(end - bytes.begin()));
}

bool FillTask(std::span<const std::byte> bytes, SideBandEvent& event) {
  TaskBody body;
  if (!Take(bytes, body)) return false;
  event.pid = body.pid;
  event.tid = body.tid;
  event.parent_pid = body.parent_pid;
  event.parent_tid = body.parent_tid;
  return true;
}

bool FillComm(std::span<const std::byte> bytes, uint16_t misc, SideBandEvent& event) {
  CommBody body;
  if (!Take(bytes, body)) return false;
  event.pid = body.pid;
  event.tid = body.tid;
  event.exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
  event.comm = TextUpToNul(bytes);
  return true;
}

bool FillMmap(std::span<const std::byte> bytes, uint16_t misc, SideBandEvent& event) {
  Mmap2Body body;
  if (!Take(bytes, body)) return false;
  event.pid = body.pid;
  event.tid = body.tid;
  event.start = body.start;
  event.length = body.length;
  event.page_offset = body.page_offset;
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) == 0) {  // else the same bytes hold a build id; we never ask for that
    event.device_major = body.device_major;
    event.device_minor = body.device_minor;
    event.inode = body.inode;
    event.inode_generation = body.inode_generation;
  }
  event.protection = body.protection;
  event.flags = body.flags;
  event.path = TextUpToNul(bytes);
  return true;
}

bool FillLost(std::span<const std::byte> bytes, SideBandEvent& event) {
  LostBody body;
  if (!Take(bytes, body)) return false;
  event.lost = body.lost;
  return true;
}

}  // namespace

absl::StatusOr<std::optional<SideBandEvent>> ParseSideBandRecord(std::span<const std::byte> record) {
  perf_event_header header;
  std::span<const std::byte> body = record;
  SampleId id;
  if (!Take(body, header) || header.size > record.size() || header.size < sizeof header + sizeof id) {
    return absl::DataLossError(absl::StrCat("perf record of ", record.size(), " bytes"));
  }
  body = body.first(header.size - sizeof header);
  std::memcpy(&id, body.last(sizeof id).data(), sizeof id);
  body = body.first(body.size() - sizeof id);

  SideBandEvent event;
  event.time = {id.time};
  event.cpu = static_cast<int>(id.cpu);
  bool whole = false;
  switch (header.type) {
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      event.kind = header.type == PERF_RECORD_FORK ? SideBandKind::kFork : SideBandKind::kExit;
      whole = FillTask(body, event);
      break;
    case PERF_RECORD_COMM:
      event.kind = SideBandKind::kComm;
      whole = FillComm(body, header.misc, event);
      break;
    case PERF_RECORD_MMAP2:
      event.kind = SideBandKind::kMmap;
      whole = FillMmap(body, header.misc, event);
      break;
    case PERF_RECORD_LOST:
      event.kind = SideBandKind::kLost;
      whole = FillLost(body, event);
      break;
    default:
      return std::nullopt;
  }
  if (!whole) {
    return absl::DataLossError(absl::StrCat("perf record of kind ", header.type, " with ", header.size, " bytes"));
  }
  return event;
}

uint64_t ReadPerfRing(std::span<const std::byte> data, uint64_t tail, uint64_t head, uint64_t* damaged,
                      absl::FunctionRef<void(std::span<const std::byte> record)> on_record) {
  std::vector<std::byte> joined;
  const uint64_t mask = data.size() - 1;
  while (tail < head) {
    // Records are multiples of 8 bytes, so their headers never wrap; damaged positions might.
    const size_t at = tail & mask;
    perf_event_header header{};
    if (head - tail < sizeof header || data.size() - at < sizeof header) {
      ++*damaged;
      return head;
    }
    std::memcpy(&header, data.data() + at, sizeof header);
    if (header.size < sizeof header || header.size > head - tail || header.size > data.size()) {
      ++*damaged;
      return head;
    }
    if (header.size <= data.size() - at) {
      on_record(data.subspan(at, header.size));
    } else {
      const size_t first = data.size() - at;
      joined.resize(header.size);
      std::memcpy(joined.data(), data.data() + at, first);
      std::memcpy(joined.data() + first, data.data(), header.size - first);
      on_record(joined);
    }
    tail += header.size;
  }
  return tail;
}

}  // namespace clrsampler
