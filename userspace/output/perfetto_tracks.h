// The packets of a Perfetto trace, and the tracks of its processes and threads.
#ifndef CLRSAMPLER_OUTPUT_PERFETTO_TRACKS_H_
#define CLRSAMPLER_OUTPUT_PERFETTO_TRACKS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "output/perfetto_fields.h"
#include "output/perfetto_interner.h"
#include "output/profile_writer.h"
#include "protozero/pbf_builder.hpp"

namespace clrsampler {

// Packets of one sequence. The texts that a packet interned go out with it.
class PerfettoPackets {
 public:
  using Builder = protozero::pbf_builder<perfetto::Packet>;

  // Model and sink are borrowed.
  PerfettoPackets(const ProfileModel& model, const OutputSink& sink) : interner_(model), sink_(sink) {}

  PerfettoInterner& interner() { return interner_; }

  // `fill` takes a Builder. The packet says that the sequence begins.
  template <typename Fill>
  void WriteFirst(Fill fill) {
    Write(perfetto::kStateCleared, [&](Builder& packet) {
      packet.add_bool(perfetto::Packet::kFirstOnSequence, true);
      fill(packet);
    });
  }
  template <typename Fill>
  void Write(Fill fill) {
    Write(perfetto::kNeedsState, fill);
  }

  absl::Status Finish();

 private:
  template <typename Fill>
  void Write(uint32_t flags, Fill fill) {
    std::string bytes;
    Builder packet(bytes);
    packet.add_uint32(perfetto::Packet::kSequence, 1);
    packet.add_uint32(perfetto::Packet::kSequenceFlags, flags);
    fill(packet);
    if (const std::string added = interner_.TakeNew(); !added.empty()) {
      packet.add_message(perfetto::Packet::kInternedData, added);
    }
    Add(bytes);
  }
  void Add(const std::string& packet);
  void Flush();

  PerfettoInterner interner_;
  const OutputSink& sink_;
  std::string buffer_;
  absl::Status status_;
};

// A track is written when it is asked for first. Where a profile does not know the number of a process, one is made up:
// the format knows processes by their numbers alone.
class PerfettoTracks {
 public:
  PerfettoTracks(const ProfileModel& model, PerfettoPackets& packets);

  uint64_t OfProcess(const ModelThread& thread);
  uint64_t OfThread(const ModelThread& thread);  // that of the process where the thread is not known
  uint64_t Below(uint64_t track, absl::string_view name);
  // The task that samples of the thread refer to.
  uint64_t TaskOf(const ModelThread& thread);

 private:
  uint32_t PidOf(const ModelThread& thread);
  void Write(const std::string& track);

  const ProfileModel& model_;
  PerfettoPackets& packets_;
  uint64_t last_ = 0;
  absl::flat_hash_map<uint32_t, uint64_t> processes_;                     // by pid
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t> threads_;  // by pid and tid
  absl::flat_hash_set<uint32_t> known_pids_;
  uint32_t last_made_up_pid_ = 0;
  absl::flat_hash_map<StringIndex, uint32_t> made_up_pids_;  // by name
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PERFETTO_TRACKS_H_
