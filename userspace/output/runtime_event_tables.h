// The pauses and compilations that the events of a profile tell of. Pure.
#ifndef CLRSAMPLER_OUTPUT_RUNTIME_EVENT_TABLES_H_
#define CLRSAMPLER_OUTPUT_RUNTIME_EVENT_TABLES_H_

#include <vector>

#include "formats/profile/profile_model.h"
#include "output/report.h"
#include "output/runtime_tables.h"

namespace clrsampler {

// The events of a profile, added up.
RuntimeTables RuntimeTablesOf(const ProfileModel& model);

// Tables of pauses and compilations. Where the profile has no events, a table says so, and which command records them.
std::vector<ReportTable> RuntimeEventTables(const ProfileModel& model);

// The table that says so.
ReportTable NoRuntimeEventsTable();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_RUNTIME_EVENT_TABLES_H_
