// The look at the end: what it tells of threads that do something else than wait.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "capture/feature_report.h"
#include "capture/sampler.h"
#include "clrsampler/wire.h"
#include "status/status.h"
#include "unit/capture/live_scenarios.h"
#include "unit/capture/wait_records.h"

namespace clrsampler::test_support {
namespace {

template <typename... Parts>
absl::Status WrongLook(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// A child that sleeps a while and ends. Until the destructor nobody asks for its exit status.
class Zombie {
 public:
  explicit Zombie(useconds_t sleep_us) : pid_(fork()) {
    if (pid_ != 0) return;
    usleep(sleep_us);
    _exit(0);
  }
  Zombie(const Zombie&) = delete;
  Zombie& operator=(const Zombie&) = delete;
  ~Zombie() {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  void AwaitEnd() const {
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

 private:
  const pid_t pid_;
};

}  // namespace

absl::Status ZombiesWaitForNothing(ScenarioSetting&) {
  auto sampler = Sampler::Create(FollowingWaits(), ProbeFeatures());
  if (!sampler.ok()) return sampler.status();
  const Zombie before(0);
  before.AwaitEnd();
  RETURN_IF_ERROR((*sampler)->Track(before.pid()));
  RETURN_IF_ERROR((*sampler)->Start());
  const Zombie meanwhile(50'000);
  RETURN_IF_ERROR((*sampler)->Track(meanwhile.pid()));
  meanwhile.AwaitEnd();
  usleep(100'000);
  (*sampler)->StopSampling();
  const WaitRecords records = DrainWaitRecords(**sampler);
  for (const Zombie* zombie : {&before, &meanwhile}) {
    const wire_wait* open = records.OpenOf(static_cast<uint32_t>(zombie->pid()));
    if (open != nullptr) return WrongLook("a zombie waits for ", open->blocked_ns, " ns");
  }
  const auto told = records.by_thread.find(static_cast<uint32_t>(meanwhile.pid()));
  if (told == records.by_thread.end() || (told->second.back().flags & WIRE_WAIT_THREAD_ENDED) == 0) {
    return WrongLook("the end was not told");
  }
  return absl::OkStatus();
}

}  // namespace clrsampler::test_support
