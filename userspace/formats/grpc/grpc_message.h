// The parts that gRPC puts around a message: the frame in the body, and the status in the trailers. HTTP/2 itself is
// libcurl's.
//
// Pure. Source: grpc/grpc, doc/PROTOCOL-HTTP2.md and doc/http-grpc-status-mapping.md; googleapis,
// google/rpc/status.proto and error_details.proto.
#ifndef CLRSAMPLER_FORMATS_GRPC_GRPC_MESSAGE_H_
#define CLRSAMPLER_FORMATS_GRPC_GRPC_MESSAGE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

enum class GrpcCode : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};
inline constexpr int kGrpcCodeCount = 17;
absl::string_view GrpcCodeText(GrpcCode code);  // "UNAVAILABLE"

struct GrpcStatus {
  GrpcCode code = GrpcCode::kUnknown;
  bool told = false;    // else it follows from the status of HTTP
  std::string message;  // any bytes
  // RetryInfo of the details: 0 to 10 minutes.
  std::optional<std::chrono::nanoseconds> retry_delay;
};

std::string GrpcFrame(absl::string_view message, bool compressed);
// The message of a body that is one frame; a view of it. InvalidArgument: it is none, compressed, or more than one.
absl::StatusOr<absl::string_view> GrpcUnframe(absl::string_view body);
// `fields`: those of the answer and of its trailers that begin with "grpc-".
GrpcStatus GrpcStatusOf(unsigned http_status, const std::map<std::string, std::string>& fields);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_GRPC_GRPC_MESSAGE_H_
