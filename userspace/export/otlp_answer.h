// Explains the answers of a collector to a request with profiles, over HTTP and over gRPC.
//
// Pure. Source: opentelemetry-specification, OTLP 1.9 ("Partial Success", "Failures"), and opentelemetry-proto v1.10.0,
// collector/profiles/v1development/profiles_service.proto.
#ifndef CLRSAMPLER_EXPORT_OTLP_ANSWER_H_
#define CLRSAMPLER_EXPORT_OTLP_ANSWER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "export/push_protocol.h"
#include "os/http_poster.h"

namespace clrsampler {

// The part of an ExportProfilesServiceResponse about profiles that were rejected.
struct OtlpPartialSuccess {
  uint64_t rejected_profiles = 0;
  std::string message;  // any bytes
};

// Empty bytes are an answer: all was taken. InvalidArgument: it is no such message.
absl::StatusOr<OtlpPartialSuccess> ReadOtlpAnswer(absl::string_view bytes);

PushVerdict JudgeOtlpHttp(const PostOutcome& outcome);
PushVerdict JudgeOtlpGrpc(const PostOutcome& outcome);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_OTLP_ANSWER_H_
