// Tables of a report that say where CPU time goes. Pure.
#ifndef CLRSAMPLER_OUTPUT_REPORT_CPU_H_
#define CLRSAMPLER_OUTPUT_REPORT_CPU_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/profile/profile_model.h"
#include "output/report.h"

namespace clrsampler {

// The purposes that the time is for, the methods of the program with all that was done for them, the methods that ran,
// and the hottest paths. Only rows for which `wanted` has a 1; empty: all. Without weight there is one table that says
// so.
std::vector<ReportTable> CpuTables(const ProfileModel& model, std::span<const uint8_t> wanted = {});

// The methods that ran, for a profile of any view whose stacks end in what the weight is of.
ReportTable SelfTable(const ProfileModel& model, std::span<const uint8_t> wanted = {});
// The methods of the program with what was done for them. `id`: "own_methods" and the like.
ReportTable OwnTable(const ProfileModel& model, std::span<const uint8_t> wanted, const std::string& id,
                     const std::string& title);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_REPORT_CPU_H_
