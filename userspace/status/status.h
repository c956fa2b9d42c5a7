// Errors of clrsampler: one sentence of what happened and, where somebody knows the cure, one hint.
//
// An absl::Status carries the sentence (with path, pid and the errno text) as its message and the hint as a payload. So
// the hint survives every layer on the way up and only the command line prints it.
#ifndef CLRSAMPLER_STATUS_STATUS_H_
#define CLRSAMPLER_STATUS_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// The same error with a cure attached; an OK status stays OK. A hint that is already there is kept: it is the nearer
// one.
absl::Status WithHint(absl::Status status, absl::string_view hint);

// The hint of an error, or empty.
std::string HintOf(const absl::Status& status);

// "WHAT: No such file or directory", with the canonical code that errno maps to.
absl::Status ErrnoError(int error_number, absl::string_view what);

// The same error with `context` and ": " in front of its message; code and hint are kept.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

}  // namespace clrsampler

// The only control-flow macros of the project.
#define RETURN_IF_ERROR(expression)                                                                                \
  do {                                                                                                             \
    if (absl::Status status_of_expression = (expression); !status_of_expression.ok()) return status_of_expression; \
  } while (false)

// ASSIGN_OR_RETURN(const Type name, expression): the value of an absl::StatusOr, declared or assigned; or its error is
// returned.
#define ASSIGN_OR_RETURN(target, ...) \
  CLRSAMPLER_ASSIGN_OR_RETURN(CLRSAMPLER_NAME_OF_LINE(__LINE__), target, __VA_ARGS__)
#define CLRSAMPLER_ASSIGN_OR_RETURN(name, target, ...) \
  auto name = (__VA_ARGS__);                           \
  if (!name.ok()) return std::move(name).status();     \
  target = *std::move(name)
#define CLRSAMPLER_NAME_OF_LINE(line) CLRSAMPLER_NAME_WITH(line)
#define CLRSAMPLER_NAME_WITH(line) status_or_of_line_##line

#endif  // CLRSAMPLER_STATUS_STATUS_H_
