// The names that the environment of a process gives it: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, POD_NAME and
// POD_NAMESPACE.
//
// Source: the OpenTelemetry specification, configuration/sdk-environment-variables.md and resource/sdk.md. The list is
// "name=value,name=value" with percent-encoding; an entry that can't be decoded is left out, as .NET's SDK does.
#ifndef CLRSAMPLER_FORMATS_LABELS_ENVIRONMENT_LABELS_H_
#define CLRSAMPLER_FORMATS_LABELS_ENVIRONMENT_LABELS_H_

#include "absl/strings/string_view.h"
#include "formats/labels/process_labels.h"

namespace clrsampler {

// `environment`: of /proc/PID/environ.
ProcessLabels EnvironmentLabels(absl::string_view environment);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_LABELS_ENVIRONMENT_LABELS_H_
