// Any bytes as what a collector answers: whatever they are, no wait is longer than ten minutes, no text leaves its
// line, and only what says so counts as taken.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "export/otlp_answer.h"
#include "formats/grpc/grpc_message.h"

namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void Check(const clrsampler::PushVerdict& verdict) {
  Require(verdict.retry_after >= std::chrono::seconds(0) && verdict.retry_after <= std::chrono::minutes(10));
  for (const char c : verdict.why) Require(!absl::ascii_iscntrl(static_cast<unsigned char>(c)));
  Require(verdict.why.size() < 1000);
  Require(verdict.rejected_profiles <= INT64_MAX);
}

}  // namespace

// Two bytes of a status, then an answer.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  clrsampler::PostOutcome outcome;
  outcome.status = static_cast<unsigned>(data[0]) << 8 | data[1];
  outcome.answer = std::string(bytes);
  const clrsampler::PushVerdict http = clrsampler::JudgeOtlpHttp(outcome);
  Check(http);
  const bool good = outcome.status >= 200 && outcome.status < 300;
  Require(good ==
          (http.answer == clrsampler::PushAnswer::kTaken || http.answer == clrsampler::PushAnswer::kUnreadable));

  outcome.fields = {{"grpc-status", std::string(bytes.substr(0, 2))},
                    {"grpc-message", std::string(bytes)},
                    {"grpc-status-details-bin", absl::Base64Escape(bytes)}};
  Check(clrsampler::JudgeOtlpGrpc(outcome));
  const auto message = clrsampler::GrpcUnframe(bytes);
  if (message.ok()) Require(clrsampler::GrpcFrame(*message, false) == bytes);
  Require(*clrsampler::GrpcUnframe(clrsampler::GrpcFrame(bytes, false)) == bytes);
  return 0;
}
