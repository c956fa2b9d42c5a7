// Pushing to an OpenTelemetry collector by OTLP, over HTTP or gRPC.
//
//   http://collector:4318    POST /v1development/profiles, protobuf, gzip
//   grpc://collector:4317    the unary call Export of the profiles service, over HTTP/2 without TLS; grpcs:// with TLS
//
// The signal is not stable yet: its version is in the path and in the name of the service (otlp_fields.h).
#ifndef CLRSAMPLER_EXPORT_OTLP_PUSH_H_
#define CLRSAMPLER_EXPORT_OTLP_PUSH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "export/otlp_window.h"
#include "export/push_protocol.h"
#include "export/push_request.h"
#include "os/http_poster.h"

namespace clrsampler {

enum class OtlpTransport : uint8_t { kHttp, kGrpc };

struct OtlpEndpoint {
  OtlpTransport transport = OtlpTransport::kHttp;
  std::string url;                 // that requests are sent to; empty: nothing is sent
  std::string server;              // as the operator wrote it
  HttpForm form = HttpForm::kAny;  // of the connection
};

// A URL of HTTP without a path gets that of the signal; one with a path is meant as it is. http and https with port
// 4317 are gRPC, since that is its port. InvalidArgument, with a hint.
absl::StatusOr<OtlpEndpoint> ParseOtlpUrl(absl::string_view text);

struct OtlpOptions {
  OtlpEndpoint endpoint;
  std::vector<std::string> headers;  // "Authorization: ..."
  std::string ca_file;               // empty: the authorities of the system
  PushBy by = PushBy::kService;
  std::string host;
  size_t request_bytes = kOtlpRequestBytes;  // before it is compressed
};

std::unique_ptr<PushProtocol> MakeOtlpProtocol(const OtlpOptions& options);
PosterOptions OtlpPosterOptions(const OtlpOptions& options);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_OTLP_PUSH_H_
