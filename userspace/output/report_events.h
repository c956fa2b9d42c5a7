// Tables of a report about what a program allocates and throws. Pure.
#ifndef CLRSAMPLER_OUTPUT_REPORT_EVENTS_H_
#define CLRSAMPLER_OUTPUT_REPORT_EVENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "output/report.h"

namespace clrsampler {

// Tables of a profile of allocations: types, and methods of the program.
std::vector<ReportTable> AllocationTables(const ProfileModel& model);

// Tables of a profile of exceptions: types with the places that throw them. ResourceExhausted: the profile is too
// large.
absl::StatusOr<std::vector<ReportTable>> ExceptionTables(const ProfileModel& model);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_REPORT_EVENTS_H_
