// A window -> the requests that bring its profiles to an OpenTelemetry collector: CPU time, and where they are recorded
// waits, delays of pauses and allocations, each as profiles of their own.
//
// Each request stands for itself: it has a dictionary of its own. Nearly every window is one.
#ifndef CLRSAMPLER_EXPORT_OTLP_WINDOW_H_
#define CLRSAMPLER_EXPORT_OTLP_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "export/push_request.h"
#include "profile/window.h"

namespace clrsampler {

inline constexpr size_t kOtlpRequestBytes = size_t{4} << 20;  // servers of gRPC take no more, unless they are told to

struct OtlpPart {
  std::string request;   // an ExportProfilesServiceRequest
  uint64_t samples = 0;  // of CPU time
  uint64_t profiles = 0;
};

struct OtlpParts {
  std::vector<OtlpPart> parts;
  // Samples whose stack alone is larger than a request may be; and those of them that are of CPU time.
  uint64_t too_large = 0, samples_too_large = 0;
};

// `most_bytes`: of a request. Samples of CPU time have their times, and those that stand for another time (the
// frequency has changed) are in a profile of their own.
OtlpParts OtlpRequestsOf(const Window& window, PushBy by, const std::string& host,
                         size_t most_bytes = kOtlpRequestBytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_OTLP_WINDOW_H_
