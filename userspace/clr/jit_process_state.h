// The files with method names of one process, and how far they were read. Part of JitMethods, which alone includes
// this.
#ifndef CLRSAMPLER_CLR_JIT_PROCESS_STATE_H_
#define CLRSAMPLER_CLR_JIT_PROCESS_STATE_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "clr/jit_methods.h"
#include "clr/jitdump_tailer.h"
#include "clr/perf_map_tailer.h"
#include "os/clock.h"
#include "symbols/frame.h"

namespace clrsampler {

struct JitMethods::ProcessState {
  uint32_t tgid = 0;
  uint64_t generation_base = 0;
  bool is_dotnet = false;
  MonotonicTime compiles_since;       // or since we know of it, whichever is earlier
  std::string marker_directory;       // where the jitdump must be, since the process has it mapped; may be empty
  std::string environment_directory;  // may be empty
  std::string jitdump_directory;      // where it was opened
  bool marker_mapped = false;
  int jitdump_descriptor = -1;  // of the target, where it was last seen
  bool jitdump_seen_open = false;
  bool environment_read = false;
  bool process_alive = true;
  bool map_form_known = false;  // perf_map.in_blocks() is what the runtime's version says

  MonotonicTime last_poll;
  MonotonicTime last_look;  // for files that are not there
  MonotonicTime last_retire;
  JitdumpExpectation expectation;
  ProcessStart start;
  JitdumpTailer jitdump;
  PerfMapTailer perf_map;
  uint64_t jitdump_resets = 0;  // for which the frames below hold
  uint64_t perf_map_resets = 0;
  JitdumpTailer::State jitdump_state = JitdumpTailer::State::kMissing;  // as of the last poll
  PerfMapTailer::State perf_map_state = PerfMapTailer::State::kMissing;
  bool jitdump_bad_said = false;
  bool perf_map_bad_said = false;
  uint64_t state_changes = 0;
  absl::flat_hash_map<uint64_t, FrameId> jitdump_frames;  // by offset of the name
  absl::flat_hash_map<uint64_t, FrameId> perf_map_frames;
  absl::flat_hash_map<uint64_t, MonotonicTime> code_stood_until;  // by start of the method

  bool jitdump_alive() const {
    return jitdump.state() == JitdumpTailer::State::kReading || jitdump.state() == JitdumpTailer::State::kTorn;
  }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_JIT_PROCESS_STATE_H_
