#include "cli/push_options.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/choice_option.h"
#include "export/push_request.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// "Name: value", in one line. The value usually is a secret, so no message repeats it.
absl::Status CheckHeaders(absl::string_view option, const std::vector<std::string>& headers) {
  for (const std::string& header : headers) {
    const size_t colon = header.find(':');
    bool good = colon != std::string::npos && colon > 0;
    for (size_t i = 0; good && i < header.size(); ++i) {
      const auto c = static_cast<unsigned char>(header[i]);
      good = !absl::ascii_iscntrl(c) && (i > colon || absl::ascii_isgraph(c));
    }
    if (!good) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat(option, " is not a name, a colon and a value")),
                      absl::StrCat("as in ", option, " 'Authorization: Bearer TOKEN'"));
    }
  }
  return absl::OkStatus();
}

void DeclareBy(CLI::App& app, const char* name, PushBy& value, const char* help) {
  static constexpr Choice<PushBy> kParts[] = {{"service", PushBy::kService}, {"process", PushBy::kProcess}};
  DeclareChoice(app, name, value, kParts, help, "WHAT");
}

void DeclareHeaders(CLI::App& app, const char* name, std::vector<std::string>& values) {
  app.add_option(name, values, "sent along, like 'Authorization: Bearer ...'; better in the file than here")
      ->allow_extra_args(false)
      ->type_name("HEADER");
}

}  // namespace

void DeclarePush(CLI::App& app, PushConfig& config) {
  app.add_option("--push", config.push, "Pyroscope server to which each window is sent")->type_name("URL");
  DeclareBy(app, "--push-by", config.push_by, "a profile for each service (container or name), or for each process");
  DeclareHeaders(app, "--push-header", config.push_headers);
  app.add_option("--otlp", config.otlp,
                 "OpenTelemetry collector to which each window is sent: http://HOST:4318, or grpc://HOST:4317;\n"
                 "with TLS https:// and grpcs://")
      ->type_name("URL");
  DeclareBy(app, "--otlp-by", config.otlp_by, "a resource for each service (container or name), or for each process");
  DeclareHeaders(app, "--otlp-header", config.otlp_headers);
  app.add_option("--otlp-ca", config.otlp_ca,
                 "PEM file of the authorities that its certificate may be from, instead of the system's")
      ->type_name("FILE");
}

absl::StatusOr<PyroscopeOptions> ParsePush(const PushConfig& config) {
  PyroscopeOptions options;
  if (!config.push.empty()) {
    ASSIGN_OR_RETURN(options.url, ParsePushUrl(config.push));
  }
  RETURN_IF_ERROR(CheckHeaders("--push-header", config.push_headers));
  options.by = config.push_by;
  options.headers = config.push_headers;
  return options;
}

absl::StatusOr<OtlpOptions> ParseOtlp(const PushConfig& config) {
  OtlpOptions options;
  if (!config.otlp.empty()) {
    ASSIGN_OR_RETURN(options.endpoint, ParseOtlpUrl(config.otlp));
  }
  RETURN_IF_ERROR(CheckHeaders("--otlp-header", config.otlp_headers));
  if (!config.otlp_ca.empty()) {
    constexpr size_t kMostBytes = 4 << 20;  // certificates of a whole system have 200 KB
    const absl::StatusOr<std::string> text = ReadWholeFile(config.otlp_ca, kMostBytes);
    if (!text.ok()) return Annotate(text.status(), "--otlp-ca");
    if (!absl::StrContains(*text, "-----BEGIN CERTIFICATE-----")) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat("--otlp-ca ", config.otlp_ca, " has no certificate")),
                      "it takes certificates in PEM, one behind the other");
    }
  }
  options.by = config.otlp_by;
  options.headers = config.otlp_headers;
  options.ca_file = config.otlp_ca;
  return options;
}

}  // namespace clrsampler
