#include "formats/grpc/grpc_message.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "protozero/exception.hpp"
#include "protozero/pbf_reader.hpp"

namespace clrsampler {
namespace {

constexpr size_t kHeadBytes = 5;  // whether it is compressed, and the length
constexpr int64_t kLongestDelaySeconds = 600;

constexpr std::array<absl::string_view, kGrpcCodeCount> kCodes = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// The meaning of an answer without a status of gRPC. Such an answer comes from a server in between.
GrpcCode CodeOfHttp(unsigned status) {
  switch (status) {
    case 400:
      return GrpcCode::kInternal;
    case 401:
      return GrpcCode::kUnauthenticated;
    case 403:
      return GrpcCode::kPermissionDenied;
    case 404:
      return GrpcCode::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return GrpcCode::kUnavailable;
    default:
      return GrpcCode::kUnknown;
  }
}

// "%20" and the like. Other text stays as it is.
std::string PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) &&
        absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]))) {
      decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

absl::string_view ViewOf(protozero::data_view view) { return {view.data(), view.size()}; }

// The length of a google.protobuf.Duration.
std::chrono::nanoseconds DelayOf(protozero::data_view duration) {
  int64_t seconds = 0;
  int32_t nanos = 0;
  protozero::pbf_reader reader(duration);
  while (reader.next()) {
    if (reader.tag_and_type() == protozero::tag_and_type(1, protozero::pbf_wire_type::varint)) {
      seconds = reader.get_int64();
    } else if (reader.tag_and_type() == protozero::tag_and_type(2, protozero::pbf_wire_type::varint)) {
      nanos = reader.get_int32();
    } else {
      reader.skip();
    }
  }
  if (seconds < 0 || nanos < 0) return std::chrono::nanoseconds(0);
  if (seconds >= kLongestDelaySeconds) return std::chrono::seconds(kLongestDelaySeconds);
  return std::chrono::seconds(seconds) + std::chrono::nanoseconds(std::min(nanos, 999'999'999));
}

// The field with this number of a message, if it is there and has a length.
std::optional<protozero::data_view> FieldOf(protozero::data_view message, protozero::pbf_tag_type tag) {
  std::optional<protozero::data_view> found;
  protozero::pbf_reader reader(message);
  while (reader.next()) {
    if (reader.tag_and_type() == protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited)) {
      found = reader.get_view();
    } else {
      reader.skip();
    }
  }
  return found;
}

// RetryInfo among the details of an encoded google.rpc.Status.
std::optional<std::chrono::nanoseconds> RetryDelayOf(const std::string& status) {
  std::optional<std::chrono::nanoseconds> delay;
  try {
    protozero::pbf_reader reader(status);
    while (reader.next()) {
      if (reader.tag_and_type() != protozero::tag_and_type(3, protozero::pbf_wire_type::length_delimited)) {
        reader.skip();
        continue;
      }
      const protozero::data_view detail = reader.get_view();
      const auto type = FieldOf(detail, 1);
      const auto info = FieldOf(detail, 2);
      if (!type || !absl::EndsWith(ViewOf(*type), "/google.rpc.RetryInfo")) continue;
      const auto duration = info ? FieldOf(*info, 1) : std::nullopt;
      delay = duration ? DelayOf(*duration) : std::chrono::nanoseconds(0);
    }
  } catch (const protozero::exception&) {  // protozero's way to report; nothing of ours throws
    return std::nullopt;
  }
  return delay;
}

}  // namespace

absl::string_view GrpcCodeText(GrpcCode code) { return kCodes[static_cast<size_t>(code)]; }

std::string GrpcFrame(absl::string_view message, bool compressed) {
  std::string frame;
  frame.reserve(kHeadBytes + message.size());
  frame.push_back(compressed ? 1 : 0);
  const auto size = static_cast<uint32_t>(message.size());
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(size >> shift));
  frame.append(message.data(), message.size());
  return frame;
}

absl::StatusOr<absl::string_view> GrpcUnframe(absl::string_view body) {
  if (body.size() < kHeadBytes) return absl::InvalidArgumentError("it ends within the head of a message");
  if (body[0] != 0) return absl::InvalidArgumentError("it is compressed, which was not asked for");
  uint32_t size = 0;
  for (size_t i = 1; i < kHeadBytes; ++i) size = size << 8 | static_cast<unsigned char>(body[i]);
  if (body.size() - kHeadBytes != size) return absl::InvalidArgumentError("it is not one whole message");
  return body.substr(kHeadBytes);
}

GrpcStatus GrpcStatusOf(unsigned http_status, const std::map<std::string, std::string>& fields) {
  GrpcStatus status;
  const auto code = fields.find("grpc-status");
  uint32_t number = 0;
  status.told = code != fields.end();
  if (!status.told) {
    status.code = CodeOfHttp(http_status);
  } else if (absl::SimpleAtoi(code->second, &number) && number < kGrpcCodeCount) {
    status.code = static_cast<GrpcCode>(number);
  }
  if (const auto message = fields.find("grpc-message"); message != fields.end()) {
    status.message = PercentDecoded(message->second);
  }
  const auto details = fields.find("grpc-status-details-bin");
  std::string bytes;
  if (details != fields.end() && absl::Base64Unescape(details->second, &bytes)) {
    status.retry_delay = RetryDelayOf(bytes);
  }
  return status;
}

}  // namespace clrsampler
