#include "output/perfetto_tracks.h"

#include "absl/strings/str_cat.h"
#include "formats/names/utf8.h"
#include "output/text_chunk.h"

namespace clrsampler {
namespace {

using protozero::pbf_builder;

}  // namespace

void PerfettoPackets::Add(const std::string& packet) {
  pbf_builder<perfetto::Trace>(buffer_).add_message(perfetto::Trace::kPacket, packet);
  if (buffer_.size() >= kChunkBytes) Flush();
}

void PerfettoPackets::Flush() {
  if (status_.ok() && !buffer_.empty()) status_ = sink_(buffer_);
  buffer_.clear();
}

absl::Status PerfettoPackets::Finish() {
  Flush();
  return status_;
}

PerfettoTracks::PerfettoTracks(const ProfileModel& model, PerfettoPackets& packets) : model_(model), packets_(packets) {
  for (const ModelThread& thread : model.threads) known_pids_.insert(thread.pid);
}

uint32_t PerfettoTracks::PidOf(const ModelThread& thread) {
  if (thread.pid != 0) return thread.pid;
  const auto [found, added] = made_up_pids_.try_emplace(thread.comm, 0);
  if (added) {
    do {
      ++last_made_up_pid_;
    } while (known_pids_.contains(last_made_up_pid_));
    found->second = last_made_up_pid_;
  }
  return found->second;
}

void PerfettoTracks::Write(const std::string& track) {
  packets_.Write(
      [&](PerfettoPackets::Builder& packet) { packet.add_message(perfetto::Packet::kTrackDescriptor, track); });
}

uint64_t PerfettoTracks::OfProcess(const ModelThread& thread) {
  const auto [found, added] = processes_.try_emplace(PidOf(thread), last_ + 1);
  if (!added) return found->second;
  const uint64_t number = ++last_;
  std::string process, track;
  pbf_builder<perfetto::Process> of_process(process);
  of_process.add_int32(perfetto::Process::kPid, static_cast<int32_t>(found->first));
  of_process.add_string(perfetto::Process::kName, WellFormedUtf8(model_.text(thread.comm)));
  if (thread.container_id != 0) {
    of_process.add_string(perfetto::Process::kLabels,
                          WellFormedUtf8(absl::StrCat("container ", model_.text(thread.container_id))));
  }
  pbf_builder<perfetto::Track> out(track);
  out.add_uint64(perfetto::Track::kId, number);
  out.add_message(perfetto::Track::kProcess, process);
  Write(track);
  return number;
}

uint64_t PerfettoTracks::OfThread(const ModelThread& thread) {
  const uint64_t of_process = OfProcess(thread);
  if (thread.tid == 0) return of_process;
  const auto [found, added] = threads_.try_emplace({PidOf(thread), thread.tid}, last_ + 1);
  if (!added) return found->second;
  const uint64_t number = ++last_;
  std::string named, track;
  pbf_builder<perfetto::Thread> of_thread(named);
  of_thread.add_int32(perfetto::Thread::kPid, static_cast<int32_t>(found->first.first));
  of_thread.add_int64(perfetto::Thread::kTid, thread.tid);
  of_thread.add_string(perfetto::Thread::kName,
                       WellFormedUtf8(model_.text(thread.name != 0 ? thread.name : thread.comm)));
  pbf_builder<perfetto::Track> out(track);
  out.add_uint64(perfetto::Track::kId, number);
  out.add_message(perfetto::Track::kThread, named);
  Write(track);
  return number;
}

uint64_t PerfettoTracks::Below(uint64_t track, absl::string_view name) {
  const uint64_t number = ++last_;
  std::string descriptor;
  pbf_builder<perfetto::Track> out(descriptor);
  out.add_uint64(perfetto::Track::kId, number);
  out.add_uint64(perfetto::Track::kParent, track);
  out.add_string(perfetto::Track::kName, std::string(name));
  Write(descriptor);
  return number;
}

uint64_t PerfettoTracks::TaskOf(const ModelThread& thread) {
  return packets_.interner().Task(PidOf(thread), thread.tid);
}

}  // namespace clrsampler
