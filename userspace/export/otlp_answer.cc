#include "export/otlp_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/grpc/grpc_message.h"
#include "protozero/exception.hpp"
#include "protozero/pbf_reader.hpp"

namespace clrsampler {
namespace {

using protozero::pbf_wire_type;
using protozero::tag_and_type;

PushVerdict Unreadable(absl::string_view why) {
  PushVerdict verdict;
  verdict.answer = PushAnswer::kUnreadable;
  verdict.why = absl::StrCat("takes profiles, but its answer can't be read: ", why);
  return verdict;
}

// The number of accepted samples, with the server's message.
PushVerdict Taken(absl::string_view answer) {
  const absl::StatusOr<OtlpPartialSuccess> partial = ReadOtlpAnswer(answer);
  if (!partial.ok()) return Unreadable(partial.status().message());
  PushVerdict verdict;
  verdict.rejected_profiles = partial->rejected_profiles;
  if (partial->rejected_profiles > 0) {
    verdict.why = absl::StrCat("takes a part of the profiles only", QuotedAnswer(partial->message));
  } else if (!partial->message.empty()) {
    verdict.why = absl::StrCat("takes profiles with a warning", QuotedAnswer(partial->message));
  }
  return verdict;
}

PushVerdict NoAnswer(const PostOutcome& outcome) {
  PushVerdict verdict;
  verdict.answer = PushAnswer::kPassing;
  verdict.why = outcome.error;
  return verdict;
}

bool IsPassing(unsigned http_status) {
  return http_status == 429 || http_status == 502 || http_status == 503 || http_status == 504;
}

bool IsPassing(const GrpcStatus& status) {
  switch (status.code) {
    case GrpcCode::kCancelled:
    case GrpcCode::kDeadlineExceeded:
    case GrpcCode::kAborted:
    case GrpcCode::kOutOfRange:
    case GrpcCode::kUnavailable:
    case GrpcCode::kDataLoss:
      return true;
    case GrpcCode::kResourceExhausted:
      return status.retry_delay.has_value();  // else it never gets better
    case GrpcCode::kOk:
    case GrpcCode::kUnknown:
    case GrpcCode::kInvalidArgument:
    case GrpcCode::kNotFound:
    case GrpcCode::kAlreadyExists:
    case GrpcCode::kPermissionDenied:
    case GrpcCode::kFailedPrecondition:
    case GrpcCode::kUnimplemented:
    case GrpcCode::kInternal:
    case GrpcCode::kUnauthenticated:
      break;
  }
  return false;
}

// The text of a google.rpc.Status, which is the body of a refusal; else the body itself.
std::string MessageOf(const std::string& body) {
  std::string message;
  try {
    protozero::pbf_reader reader(body);
    while (reader.next()) {
      if (reader.tag_and_type() == tag_and_type(2, pbf_wire_type::length_delimited)) {
        message = reader.get_string();
      } else {
        reader.skip();
      }
    }
  } catch (const protozero::exception&) {  // protozero's way to report; nothing of ours throws
    return body;
  }
  return message.empty() ? body : message;
}

}  // namespace

absl::StatusOr<OtlpPartialSuccess> ReadOtlpAnswer(absl::string_view bytes) {
  OtlpPartialSuccess partial;
  int64_t rejected = 0;
  try {
    protozero::pbf_reader response(bytes.data(), bytes.size());
    while (response.next()) {
      if (response.tag_and_type() != tag_and_type(1, pbf_wire_type::length_delimited)) {
        response.skip();
        continue;
      }
      protozero::pbf_reader success(response.get_view());
      while (success.next()) {
        if (success.tag_and_type() == tag_and_type(1, pbf_wire_type::varint)) {
          rejected = success.get_int64();
        } else if (success.tag_and_type() == tag_and_type(2, pbf_wire_type::length_delimited)) {
          partial.message = success.get_string();
        } else {
          success.skip();
        }
      }
    }
  } catch (const protozero::exception&) {  // protozero's way to report; nothing of ours throws
    return absl::InvalidArgumentError("it is no message of the profiles service");
  }
  if (rejected < 0) return absl::InvalidArgumentError("it rejects less than no profiles");
  partial.rejected_profiles = static_cast<uint64_t>(rejected);
  return partial;
}

PushVerdict JudgeOtlpHttp(const PostOutcome& outcome) {
  if (outcome.status == 0) return NoAnswer(outcome);
  if (outcome.status >= 200 && outcome.status < 300) {
    return outcome.cut ? Unreadable("it does not end") : Taken(outcome.answer);
  }
  PushVerdict verdict;
  verdict.answer = IsPassing(outcome.status) ? PushAnswer::kPassing : PushAnswer::kRefused;
  verdict.retry_after = outcome.retry_after;
  verdict.why = absl::StrCat("HTTP status ", outcome.status, QuotedAnswer(MessageOf(outcome.answer)));
  return verdict;
}

PushVerdict JudgeOtlpGrpc(const PostOutcome& outcome) {
  if (outcome.status == 0) return NoAnswer(outcome);
  PushVerdict verdict;
  if (outcome.cut) {
    verdict.answer = PushAnswer::kRefused;
    verdict.why = "its answer does not end";
    return verdict;
  }
  const GrpcStatus status = GrpcStatusOf(outcome.status, outcome.fields);
  if (status.code == GrpcCode::kOk) {
    const absl::StatusOr<absl::string_view> message = GrpcUnframe(outcome.answer);
    return message.ok() ? Taken(*message) : Unreadable(message.status().message());
  }
  verdict.answer = IsPassing(status) ? PushAnswer::kPassing : PushAnswer::kRefused;
  verdict.retry_after = status.retry_delay.value_or(outcome.retry_after);
  verdict.why = status.told ? absl::StrCat("gRPC status ", GrpcCodeText(status.code), QuotedAnswer(status.message))
                            : absl::StrCat("HTTP status ", outcome.status, " and none of gRPC");
  return verdict;
}

}  // namespace clrsampler
