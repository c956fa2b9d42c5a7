#include "capture/recorded_capture.h"

#include <fcntl.h>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include <algorithm>

#include "os/tape_answer.h"

namespace clrsampler {

template <>
struct TapeCodec<SideBandEvent> {
  static void Write(const SideBandEvent& event, TapeWriter& out) {
    out.Put(static_cast<uint8_t>(event.kind));
    out.Put(event.time.ns);
    out.Put(int32_t{event.cpu});
    for (const uint32_t number : {event.pid, event.tid, event.parent_pid, event.parent_tid}) out.Put(number);
    out.Put(uint8_t{event.exec});
    out.PutText(event.comm);
    for (const uint64_t number :
         {event.lost, event.start, event.length, event.page_offset, event.inode, event.inode_generation}) {
      out.Put(number);
    }
    for (const uint32_t number : {event.device_major, event.device_minor, event.protection, event.flags}) {
      out.Put(number);
    }
    out.PutText(event.path);
  }
  static SideBandEvent Read(TapeReader& in) {
    SideBandEvent event;
    const auto kind = in.Get<uint8_t>();
    event.kind = static_cast<SideBandKind>(std::min<uint8_t>(kind, static_cast<uint8_t>(SideBandKind::kLost)));
    event.time.ns = in.Get<uint64_t>();
    event.cpu = in.Get<int32_t>();
    for (uint32_t* number : {&event.pid, &event.tid, &event.parent_pid, &event.parent_tid})
      *number = in.Get<uint32_t>();
    event.exec = in.Get<uint8_t>() == 1;
    event.comm = std::string(in.GetText());
    for (uint64_t* number :
         {&event.lost, &event.start, &event.length, &event.page_offset, &event.inode, &event.inode_generation}) {
      *number = in.Get<uint64_t>();
    }
    for (uint32_t* number : {&event.device_major, &event.device_minor, &event.protection, &event.flags}) {
      *number = in.Get<uint32_t>();
    }
    event.path = std::string(in.GetText());
    return event;
  }
};

// Streams that were saved by older versions end earlier. A value without a count then is 0.
template <>
struct TapeCodec<wire_counters> {
  static constexpr size_t kWords = sizeof(wire_counters) / sizeof(uint64_t);
  static constexpr size_t kAlwaysThere = offsetof(wire_counters, hook_summed) / sizeof(uint64_t);
  static void Write(const wire_counters& counters, TapeWriter& out) { out.Put(counters); }
  static wire_counters Read(TapeReader& in) {
    std::array<uint64_t, kWords> words{};
    for (size_t i = 0; i < kWords && (i < kAlwaysThere || in.left() >= sizeof(uint64_t)); ++i) {
      words[i] = in.Get<uint64_t>();
    }
    return std::bit_cast<wire_counters>(words);
  }
};

template <>
struct TapeCodec<HitsOfOthers> {
  static void Write(const HitsOfOthers& other, TapeWriter& out) {
    out.Put(other.who);
    out.Put(other.hits);
  }
  static HitsOfOthers Read(TapeReader& in) {
    const auto who = in.Get<wire_hook_other>();
    return {who, in.Get<uint64_t>()};
  }
};

template <>
struct TapeCodec<FollowedCpus> {
  static void Write(const FollowedCpus& cpus, TapeWriter& out) {
    TapeCodec<absl::Status>::Write(cpus.status, out);
    TapeCodec<std::vector<int>>::Write(cpus.restarted, out);
  }
  static FollowedCpus Read(TapeReader& in) {
    absl::Status status = TapeCodec<absl::Status>::Read(in);
    return {std::move(status), TapeCodec<std::vector<int>>::Read(in)};
  }
};

namespace {

struct RecordedBatch {
  std::vector<SideBandEvent> events;
  std::vector<std::string> records;
};

}  // namespace

template <>
struct TapeCodec<RecordedBatch> {
  static void Write(const RecordedBatch& batch, TapeWriter& out) {
    TapeCodec<std::vector<SideBandEvent>>::Write(batch.events, out);
    TapeCodec<std::vector<std::string>>::Write(batch.records, out);
  }
  static RecordedBatch Read(TapeReader& in) {
    RecordedBatch batch;
    batch.events = TapeCodec<std::vector<SideBandEvent>>::Read(in);
    batch.records = TapeCodec<std::vector<std::string>>::Read(in);
    return batch;
  }
};

// The content of a batch is handed over only once all of it has been taken: handling it asks other questions.
void RecordedCapture::Drain(absl::FunctionRef<void(const SideBandEvent&)> on_event, RecordFunction on_record) {
  main_loop_.Check();
  tape_.NextIteration();
  if (tape_.ended()) return;
  const RecordedBatch batch = Taped(
      &tape_,
      [this] {
        RecordedBatch taken;
        live_->Drain(
            [&](const SideBandEvent& event) {
              if (event.kind == SideBandKind::kLost || concerns_(event)) taken.events.push_back(event);
            },
            [&](std::span<const std::byte> record) {
              taken.records.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
            });
        return taken;
      },
      "drain");
  for (const SideBandEvent& event : batch.events) on_event(event);
  for (const std::string& record : batch.records) on_record(std::as_bytes(std::span(record)));
}

double RecordedCapture::fill() const {
  return static_cast<double>(Taped(
             &tape_, [this] { return static_cast<uint64_t>(live_->fill() * 1e9); }, "fill")) /
         1e9;
}

wire_counters RecordedCapture::counters() const {
  return Taped(
      &tape_, [this] { return live_->counters(); }, "counters");
}

absl::Status RecordedCapture::Start() {
  main_loop_.Check();
  absl::Status started = Taped(
      &tape_, [this] { return live_->Start(); }, "start");
  sampling_ = started.ok();
  return started;
}

void RecordedCapture::StopSampling() {
  main_loop_.Check();
  sampling_ = false;
  if (live_ != nullptr) live_->StopSampling();
}

FollowedCpus RecordedCapture::FollowCpus(CpuPulse::BusyNs busy_ns) {
  main_loop_.Check();
  return Taped(
      &tape_, [&] { return live_->FollowCpus(busy_ns); }, "cpus");
}

absl::Status RecordedCapture::SetFrequency(int frequency_hz) {
  main_loop_.Check();
  return Taped(
      &tape_, [&] { return live_->SetFrequency(frequency_hz); }, "frequency ", frequency_hz);
}

absl::Status RecordedCapture::Track(pid_t tgid) {
  main_loop_.Check();
  return Taped(
      &tape_, [&] { return live_->Track(tgid); }, "track ", tgid);
}

void RecordedCapture::Untrack(pid_t tgid) {
  main_loop_.Check();
  if (live_ != nullptr) live_->Untrack(tgid);
}

absl::Status RecordedCapture::SetTransientCode(pid_t tgid, const wire_transient_code& code,
                                               std::span<const wire_transient_heap> heaps) {
  main_loop_.Check();
  return Taped(
      &tape_, [&] { return live_->SetTransientCode(tgid, code, heaps); }, "transient ", tgid);
}

void RecordedCapture::ForgetTransientCode(pid_t tgid) {
  main_loop_.Check();
  if (live_ != nullptr) live_->ForgetTransientCode(tgid);
}

absl::Status RecordedCapture::SetAsyncLayout(pid_t tgid, const wire_async_layouts& layout) {
  main_loop_.Check();
  return Taped(
      &tape_, [&] { return live_->SetAsyncLayout(tgid, layout); }, "async ", tgid);
}

void RecordedCapture::ForgetAsyncLayout(pid_t tgid) {
  main_loop_.Check();
  if (live_ != nullptr) live_->ForgetAsyncLayout(tgid);
}

absl::Status RecordedCapture::SetThreadVariable(pid_t tgid, const wire_thread_variable& variable) {
  return Taped(
      &tape_, [&] { return live_->SetThreadVariable(tgid, variable); }, "thread variable ", tgid);
}

void RecordedCapture::ForgetThreadVariable(pid_t tgid) {
  if (live_ != nullptr) live_->ForgetThreadVariable(tgid);
}

absl::StatusOr<UniqueFd> RecordedCapture::AttachHook(const HookPlace& place, const std::string& path) {
  main_loop_.Check();
  absl::StatusOr<UniqueFd> attached;
  const absl::Status status = Taped(
      &tape_,
      [&] {
        attached = live_->AttachHook(place, path);
        return attached.status();
      },
      "hook ", static_cast<int>(place.hook), " ", static_cast<int>(place.form), " ", place.offset);
  if (!status.ok()) return status;
  // The descriptor tells its owner that the probe is there.
  if (tape_.plays()) return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return attached;
}

std::vector<HitsOfOthers> RecordedCapture::HookHitsOfOthers() const {
  return Taped(
      &tape_, [this] { return live_->HookHitsOfOthers(); }, "others");
}

uint32_t RecordedCapture::HookHitsMissed(pid_t tgid) const {
  return Taped(
      &tape_, [&] { return live_->HookHitsMissed(tgid); }, "missed ", tgid);
}

uint64_t RecordedCapture::map_bytes() const {
  return Taped(
      &tape_, [this] { return live_->map_bytes(); }, "map bytes");
}

}  // namespace clrsampler
