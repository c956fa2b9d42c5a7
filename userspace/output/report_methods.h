// Tables about one method of a profile: who calls it, and what its lines cost. Pure.
#ifndef CLRSAMPLER_OUTPUT_REPORT_METHODS_H_
#define CLRSAMPLER_OUTPUT_REPORT_METHODS_H_

#include <string>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "output/report.h"

namespace clrsampler {

// The full name of the method that `text` names: itself, else the end of one name, else a part of one. NotFound: no
// method is called so; InvalidArgument: several are, and the error names some.
absl::StatusOr<std::string> MethodNamed(const ProfileModel& model, const std::string& text);

// Methods that call it, by the weight of the samples in whose stacks they do. In a recursion the outermost call counts.
ReportTable CallersTable(const ProfileModel& model, const std::string& method);

// Lines of it, by the weight of the samples that were there, and of those that were in what it calls from there.
// Without lines in the profile the table has a sentence that says so.
ReportTable LinesTable(const ProfileModel& model, const std::string& method);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_REPORT_METHODS_H_
