// Where the processes of a profile of waits wait: by kind, method and who ended it.
#ifndef CLRSAMPLER_OUTPUT_WAIT_SITES_H_
#define CLRSAMPLER_OUTPUT_WAIT_SITES_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "formats/profile/profile_model.h"

namespace clrsampler {

struct ProcessWaitSite {
  uint32_t pid = 0;
  std::string kind;    // WaitKindText, or "waits shorter than 1ms"
  std::string method;  // the program's own that is nearest to the leaf, else a managed one, else any function
  std::string waker;   // "woken by thread worker"; empty: it is not known

  friend auto operator<=>(const ProcessWaitSite&, const ProcessWaitSite&) = default;
};

// Adds what a profile of view off-cpu or wall says, in its unit. A sample that runs is no wait.
void AddWaitSites(const ProfileModel& model, std::map<ProcessWaitSite, uint64_t>& sums);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_WAIT_SITES_H_
