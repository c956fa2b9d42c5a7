// One perf event per CPU, following CPUs that come and go.
#ifndef CLRSAMPLER_CAPTURE_PERF_EVENTS_H_
#define CLRSAMPLER_CAPTURE_PERF_EVENTS_H_

#include <linux/perf_event.h>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"
#include "status/thread_checker.h"

namespace clrsampler {

// perf_event_open(2) for all processes of one CPU, close-on-exec. Returns the descriptor or -errno.
int OpenCpuEvent(const perf_event_attr& attributes, int cpu);

// Whether the calling thread may not open the events of a CPU.
bool PerfEventsAreRefused();
// Whether this kernel refuses the events of a CPU to a thread without CAP_SYS_ADMIN, whatever else it has. Kernels of
// Debian and Ubuntu do while kernel.perf_event_paranoid is above 2, and 3 or 4 is their default. Tried by the calling
// thread; false where it has no such capability to give up.
bool PerfEventsTakeSysAdmin();

// Explains a failed perf_event_open and says what to do: paranoid setting, capabilities, open files. `what` begins the
// sentence.
absl::Status PerfOpenError(int error_number, absl::string_view what);

// Many CPUs need two descriptors each: raises the soft limit of open files to the hard one. Best effort.
void RaiseOpenFileLimit();

// The events of all online CPUs. Main loop only.
class CpuEvents {
 public:
  // Opens and starts the event of one CPU: a descriptor, or -errno. Replaced in tests.
  using Open = std::function<int(int cpu)>;
  // Called before the event of a CPU that went offline, or stopped, is closed.
  using Close = std::function<void(int cpu)>;

  CpuEvents(Open open, std::string what) : open_(std::move(open)), what_(std::move(what)) {}

  // Makes the open events those of `online` (ascending). A CPU that goes offline in between (ENODEV) is skipped: the
  // next call settles it. Any other failure is an error: with `all_or_nothing` no event is left, else those of the
  // other CPUs stay, and the next call tries again. The events of `stopped` CPUs are opened anew.
  absl::Status Follow(std::span<const int> online, bool all_or_nothing, std::span<const int> stopped = {},
                      const Close& before_close = {});
  void CloseAll() { events_.clear(); }

  std::vector<int> cpus() const;
  const std::map<int, UniqueFd>& events() const { return events_; }

 private:
  Open open_;
  std::string what_;
  std::map<int, UniqueFd> events_;  // by CPU
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_PERF_EVENTS_H_
