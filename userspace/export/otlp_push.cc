#include "export/otlp_push.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "export/otlp_answer.h"
#include "export/server_url.h"
#include "formats/grpc/grpc_message.h"
#include "formats/profile/gzip.h"
#include "output/otlp_fields.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kGrpcPort = "4317";

absl::StatusOr<std::string> Compressed(absl::string_view bytes) {
  std::string compressed;
  const GzipStream::Sink sink = [&](absl::string_view piece) {
    compressed.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  GzipStream stream(sink);
  RETURN_IF_ERROR(stream.Write(bytes));
  RETURN_IF_ERROR(stream.Finish());
  return compressed;
}

class OtlpProtocol : public PushProtocol {
 public:
  explicit OtlpProtocol(const OtlpOptions& options) : options_(options), headers_(options.headers) {
    if (grpc()) {
      headers_.insert(headers_.end(), {"Content-Type: application/grpc+proto", "TE: trailers", "grpc-encoding: gzip",
                                       "grpc-accept-encoding: identity"});
    } else {
      headers_.insert(headers_.end(), {"Content-Type: application/x-protobuf", "Content-Encoding: gzip"});
    }
  }

  absl::StatusOr<PushMessages> Encode(const Window& window) const override {
    const OtlpParts parts = OtlpRequestsOf(window, options_.by, options_.host, options_.request_bytes);
    PushMessages result;
    result.too_large = parts.too_large;
    result.samples_too_large = parts.samples_too_large;
    for (const OtlpPart& part : parts.parts) {
      ASSIGN_OR_RETURN(std::string compressed, Compressed(part.request));
      PushMessage message;
      message.url = options_.endpoint.url;
      message.headers = headers_;
      message.body = grpc() ? GrpcFrame(compressed, /*compressed=*/true) : std::move(compressed);
      message.bytes = message.body.size();
      message.samples = part.samples;
      message.profiles = part.profiles;
      result.messages.push_back(std::move(message));
    }
    return result;
  }

  PushVerdict Judge(const PostOutcome& outcome) const override {
    return grpc() ? JudgeOtlpGrpc(outcome) : JudgeOtlpHttp(outcome);
  }

  std::string server() const override { return options_.endpoint.server; }

 private:
  bool grpc() const { return options_.endpoint.transport == OtlpTransport::kGrpc; }

  const OtlpOptions options_;
  std::vector<std::string> headers_;
};

}  // namespace

absl::StatusOr<OtlpEndpoint> ParseOtlpUrl(absl::string_view text) {
  const auto wrong = [&](absl::string_view why) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("can't send OTLP to ", text, ": ", why)),
                    "http://collector:4318 for HTTP, grpc://collector:4317 for gRPC; https:// and grpcs:// with TLS");
  };
  absl::StatusOr<ServerUrl> url = ParseServerUrl(text);
  if (!url.ok()) return wrong(url.status().message());
  const bool grpc = url->scheme == "grpc" || url->scheme == "grpcs";
  if (!grpc && url->scheme != "http" && url->scheme != "https") {
    return wrong("it does not begin with http://, https://, grpc:// or grpcs://");
  }
  const bool tls = url->scheme == "https" || url->scheme == "grpcs";
  OtlpEndpoint endpoint;
  endpoint.server = url->text();
  url->scheme = tls ? "https" : "http";
  if (grpc || (url->has_port(kGrpcPort) && url->path.empty())) {
    if (!url->path.empty()) return wrong("gRPC has no path");
    endpoint.transport = OtlpTransport::kGrpc;
    endpoint.form = tls ? HttpForm::kHttp2Tls : HttpForm::kHttp2Plain;
    url->path = absl::StrCat("/", otlp::kService, "/Export");
  } else if (url->path.empty()) {
    url->path = absl::StrCat("/", otlp::kVersion, "/profiles");
  }
  endpoint.url = url->text();
  return endpoint;
}

std::unique_ptr<PushProtocol> MakeOtlpProtocol(const OtlpOptions& options) {
  return std::make_unique<OtlpProtocol>(options);
}

PosterOptions OtlpPosterOptions(const OtlpOptions& options) {
  PosterOptions poster;
  poster.form = options.endpoint.form;
  poster.ca_file = options.ca_file;
  if (options.endpoint.transport == OtlpTransport::kGrpc) poster.field_prefix = "grpc-";
  return poster;
}

}  // namespace clrsampler
