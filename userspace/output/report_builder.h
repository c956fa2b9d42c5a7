// Profiles -> the report of all that they say. Pure.
#ifndef CLRSAMPLER_OUTPUT_REPORT_BUILDER_H_
#define CLRSAMPLER_OUTPUT_REPORT_BUILDER_H_

#include <span>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "output/report.h"
#include "output/report_coverage.h"
#include "output/runtime_tables.h"

namespace clrsampler {

// The tables about one profile, by its view, without its coverage.
absl::StatusOr<std::vector<ReportTable>> TablesOf(const ProfileModel& model);

// The methods that changed by more than noise. Errors are those of DiffProfiles.
absl::StatusOr<ReportTable> ChangesTable(const ProfileModel& before, const ProfileModel& after);

// One view may have two sources: the later one is reported, and compared with the earlier one. `runtime`, of a
// recording; nullptr: the events of the profiles tell of it. InvalidArgument: more than two of a view, or two that
// can't be compared.
absl::StatusOr<Report> BuildReport(std::span<const ReportSource> sources, const RuntimeTables* runtime);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_REPORT_BUILDER_H_
