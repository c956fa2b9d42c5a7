// The events of a process in the same vocabulary as its runtime's own stream (formats/nettrace/clr_events.h), by what
// is seen from outside: probes in the runtime, the kernel's events about tasks, and the runtime's memory.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_PROBED_EVENTS_H_
#define CLRSAMPLER_RUNTIME_EVENTS_PROBED_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "capture/side_band_parser.h"
#include "formats/nettrace/clr_event_stream.h"
#include "formats/nettrace/clr_events.h"
#include "profile/jit_tracker.h"
#include "profile/suspension_tracker.h"
#include "runtime_events/thread_creation_watch.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only; events in the order of their times.
class ProbedEvents {
 public:
  // `source`: "probe", "kernel" or "memory".
  using Receiver = std::function<void(const ClrEventRecord&, absl::string_view source)>;

  // Kinds that are seen this way.
  static std::span<const ClrEventKind> AllKinds();

  // `modules`: names of those that are loaded already, without folder and extension.
  ProbedEvents(std::span<const ClrEventKind> kinds, std::vector<std::string> modules, Receiver receiver);

  // The kinds among these that have to be asked for.
  bool wants_suspensions() const;
  bool wants_compilations() const;
  bool wants_thread_creations() const { return Wants(ClrEventKind::kThreadCreated); }

  void OnThreadCreated(const ThreadCreation& creation);
  void OnTask(const SideBandEvent& event);
  void OnRuntime(const RuntimeEvent& event);
  void OnCompilation(const NamedCompilation& named);

 private:
  // A program that makes up names of assemblies without end is told of so many.
  static constexpr size_t kMaxModules = 1 << 16;

  bool Wants(ClrEventKind kind) const { return wanted_[static_cast<size_t>(kind)]; }
  void Give(MonotonicTime time, uint32_t tid, ClrEvent event, absl::string_view source);
  void Load(MonotonicTime time, uint32_t tid, absl::string_view name, std::string path, absl::string_view source);

  std::vector<bool> wanted_;  // by kind
  absl::flat_hash_set<std::string> modules_;
  absl::flat_hash_map<uint32_t, std::string> names_;  // of threads that were given one, by tid
  Receiver receiver_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

// "System.Linq" of "/usr/share/dotnet/shared/System.Linq.dll"; empty: no assembly has such a path.
absl::string_view AssemblyOfPath(absl::string_view path);

// Assemblies that a process has mapped, each once. None where that can't be read.
std::vector<std::string> MappedAssemblies(uint32_t pid);

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_PROBED_EVENTS_H_
