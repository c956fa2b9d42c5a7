// Messages of the .NET diagnostics IPC protocol, as far as switching perf maps and sessions of events on and off and
// loading a profiler needs them.
//
// One connection carries one request and one reply. Both begin with 20 bytes, little-endian: "DOTNET_IPC_V1\0", u16
// size of the whole message, u8 command set, u8 command id, u16 0. A reply has command set 0xFF; its id is 0x00 for
// success or 0xFF for an error, whose payload is an i32 HRESULT. A text is a u32 count of UTF-16 units, the closing NUL
// included, and the units.
// Source: dotnet/diagnostics:documentation/design-docs/ipc-protocol.md; exercised on 8.0.30, 9.0.19, 10.0.12, 10.0.14.
// EnablePerfMap and DisablePerfMap are answered since 8.0; older runtimes reply kDiagnosticsUnknownCommand.
// ResumeRuntime is left out on purpose: a runtime that somebody suspended is not ours to start.
#ifndef CLRSAMPLER_FORMATS_RUNTIME_DIAGNOSTICS_MESSAGE_H_
#define CLRSAMPLER_FORMATS_RUNTIME_DIAGNOSTICS_MESSAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace clrsampler {

// Command set in the high byte, command id in the low one.
enum class DiagnosticsCommand : uint16_t {
  kStopTracing = 0x0201,
  kCollectTracing2 = 0x0203,  // since 5.0
  kCollectTracing3 = 0x0204,  // since 9.0; 8.0.34 does not know it
  kAttachProfiler = 0x0301,
  kProcessInfo = 0x0400,
  kProcessInfo2 = 0x0404,  // since 6.0
  kEnablePerfMap = 0x0405,
  kDisablePerfMap = 0x0406,
  kProcessInfo3 = 0x0408,  // since 8.0
};

// The files that EnablePerfMap switches on. 0 and more than 3 are answered with E_INVALIDARG.
enum class PerfMapKind : uint32_t { kBoth = 1, kJitdump = 2, kPerfMap = 3 };

inline constexpr size_t kDiagnosticsHeaderBytes = 20;
inline constexpr size_t kMaxDiagnosticsMessageBytes = 0xFFFF;  // the size field has 16 bits

inline constexpr uint32_t kDiagnosticsUnknownCommand = 0x80131385;  // CORDIAGIPC_E_UNKNOWN_COMMAND

// The bytes of a request; `payload` is at most kMaxDiagnosticsMessageBytes - kDiagnosticsHeaderBytes long.
std::string EncodeDiagnosticsRequest(DiagnosticsCommand command, std::span<const std::byte> payload = {});
std::string EncodeEnablePerfMap(PerfMapKind kind);

// A session of events of one provider, which the runtime sends as nettrace behind its reply, on the same connection.
// Only the form nettrace is asked for: another number crashed 8.0.34.
struct TracingRequest {
  std::string provider;            // ASCII
  uint64_t keywords = 0;           // bits: which events
  uint32_t level = 0;              // 1 critical to 5 verbose: up to which
  uint32_t buffer_megabytes = 16;  // of the target's memory, at most; what does not fit is lost
  bool stacks = false;             // an event has the stack of its thread; by kCollectTracing2 it always has
};
// `command` is kCollectTracing3 or, for runtimes that do not know that, kCollectTracing2.
std::string EncodeCollectTracing(DiagnosticsCommand command, const TracingRequest& request);
// The session's number, from the payload of the reply. DataLoss: there is none.
absl::StatusOr<uint64_t> ParseTracingSession(std::span<const std::byte> payload);
// Answered on a connection of its own, when all of the session's events were taken from the other one.
std::string EncodeStopTracing(uint64_t session);

std::string EncodeDiagnosticsReply(std::optional<uint32_t> error, std::span<const std::byte> payload);

// A library that the runtime shall load and call as a profiler (ICorProfilerCallback3 and newer). The answer comes when
// the library has agreed, refused, or could not be loaded.
struct AttachRequest {
  uint32_t timeout_seconds = 10;
  std::array<std::byte, 16> profiler{};  // the CLSID, as it lies in memory
  std::string path;                      // in the target's file system; ASCII
  std::string data;                      // what the library gets, whatever that is
};
std::string EncodeAttachProfiler(const AttachRequest& request);

struct DiagnosticsRequest {
  DiagnosticsCommand command{};  // as sent, perhaps none of ours
  std::span<const std::byte> payload;
};

struct DiagnosticsReply {
  std::optional<uint32_t> error;  // the HRESULT of a refusal
  std::span<const std::byte> payload;
};

// nullopt: more bytes are needed. An error (DataLoss) is final: these bytes are no message, or not of that direction.
// Bytes behind the message are not looked at. The payload points into `bytes`.
absl::StatusOr<std::optional<DiagnosticsRequest>> ParseDiagnosticsRequest(std::span<const std::byte> bytes);
absl::StatusOr<std::optional<DiagnosticsReply>> ParseDiagnosticsReply(std::span<const std::byte> bytes);

struct RuntimeProcessInfo {
  uint64_t pid = 0;                    // as the process sees itself
  std::array<std::byte, 16> cookie{};  // tells one runtime from the next
  // UTF-8; lone surrogates become U+FFFD.
  std::string command_line;
  std::string operating_system;
  std::string architecture;
  // From ProcessInfo2 on. Measured: the assembly is named even while the runtime waits at its start for a resume, so it
  // says nothing about whether the runtime is up.
  std::string entry_assembly;
  std::string runtime_version;     // "10.0.12"
  std::string runtime_identifier;  // ProcessInfo3: "linux-x64"
};

// The payload of the reply to kProcessInfo, kProcessInfo2 or kProcessInfo3.
absl::StatusOr<RuntimeProcessInfo> ParseRuntimeProcessInfo(DiagnosticsCommand command,
                                                           std::span<const std::byte> payload);

// Words for an HRESULT that the runtime answers with.
std::string DiagnosticsErrorText(uint32_t hresult);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_RUNTIME_DIAGNOSTICS_MESSAGE_H_
