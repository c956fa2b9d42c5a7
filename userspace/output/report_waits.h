// Tables of a report that say where threads wait, and whether the thread pool is starved. Pure.
#ifndef CLRSAMPLER_OUTPUT_REPORT_WAITS_H_
#define CLRSAMPLER_OUTPUT_REPORT_WAITS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "output/report.h"

namespace clrsampler {

// Tables of a profile of waits: kinds, places where threads wait for each other with the thread that ended it, other
// places, and, of wall time, the thread pool. ResourceExhausted: the profile is too large for that.
absl::StatusOr<std::vector<ReportTable>> WaitTables(const ProfileModel& model);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_REPORT_WAITS_H_
