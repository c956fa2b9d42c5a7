// The basis of the numbers of a report: how many samples of which processes, what was lost and what has no name. Pure.
#ifndef CLRSAMPLER_OUTPUT_REPORT_COVERAGE_H_
#define CLRSAMPLER_OUTPUT_REPORT_COVERAGE_H_

#include <span>
#include <string>

#include "formats/profile/profile_model.h"
#include "output/report.h"

namespace clrsampler {

struct ReportSource {
  std::string name;  // "cpu.json", "process 4711"
  const ProfileModel* model = nullptr;
};

// A row for each profile, and sentences about what is missing. Facts that a file does not tell are said to be unknown.
ReportTable CoverageTable(std::span<const ReportSource> sources);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_REPORT_COVERAGE_H_
