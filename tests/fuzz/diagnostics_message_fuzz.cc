// Properties: a reply is the same whether its bytes come at once or in two parts. An understood message is encoded to
// the same bytes again. No text of a process info is longer than its bytes allow.
#include <cstdint>
#include <optional>
#include <string>

#include "formats/byte_reader.h"
#include "formats/runtime/diagnostics_message.h"

namespace clrsampler {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void CheckReply(absl::string_view bytes, size_t split) {
  const auto whole = ParseDiagnosticsReply(AsBytes(bytes));
  const auto part = ParseDiagnosticsReply(AsBytes(bytes.substr(0, split)));
  if (!part.ok()) return Require(!whole.ok());
  if (part->has_value()) {
    Require(whole.ok() && whole->has_value());
    Require((*whole)->payload.size() == (*part)->payload.size() && (*whole)->error == (*part)->error);
  }
  if (!whole.ok() || !whole->has_value()) return;
  const DiagnosticsReply& reply = **whole;
  Require(kDiagnosticsHeaderBytes + reply.payload.size() <= bytes.size());
  const std::string again = EncodeDiagnosticsReply(std::nullopt, reply.payload);
  const auto reparsed = ParseDiagnosticsReply(AsBytes(again));
  Require(reparsed.ok() && reparsed->has_value() && AsText((*reparsed)->payload) == AsText(reply.payload));
  for (const DiagnosticsCommand command :
       {DiagnosticsCommand::kProcessInfo, DiagnosticsCommand::kProcessInfo2, DiagnosticsCommand::kProcessInfo3}) {
    const auto info = ParseRuntimeProcessInfo(command, reply.payload);
    if (!info.ok()) continue;
    // A UTF-16 unit makes at most three bytes of UTF-8.
    Require(2 * (info->command_line.size() + info->operating_system.size() + info->architecture.size() +
                 info->entry_assembly.size() + info->runtime_version.size() + info->runtime_identifier.size()) <=
            3 * reply.payload.size());
  }
}

void CheckRequest(absl::string_view bytes) {
  const auto request = ParseDiagnosticsRequest(AsBytes(bytes));
  if (!request.ok() || !request->has_value()) return;
  const std::string again = EncodeDiagnosticsRequest((*request)->command, (*request)->payload);
  // All but the two reserved bytes, which are written as 0.
  Require(again.substr(0, 18) == bytes.substr(0, 18) && again.substr(20) == bytes.substr(20, again.size() - 20));
}

}  // namespace
}  // namespace clrsampler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;  // NOLINT
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  CheckReply(bytes, (data[0] | size_t{data[1]} << 8) % (bytes.size() + 1));
  CheckRequest(bytes);
  return 0;
}
