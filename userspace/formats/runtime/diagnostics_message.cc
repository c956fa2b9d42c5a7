#include "formats/runtime/diagnostics_message.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "formats/utf16.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kMessageMagic[] = "DOTNET_IPC_V1";  // its NUL belongs to it
constexpr size_t kMagicBytes = sizeof kMessageMagic;
constexpr uint8_t kServerSet = 0xFF;
constexpr uint8_t kOk = 0x00;
constexpr uint8_t kError = 0xFF;

static_assert(kMagicBytes == 14);

void AppendLittle(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

// ASCII as UTF-16 with its count and its NUL.
void AppendText(std::string& out, absl::string_view text) {
  AppendLittle(out, text.size() + 1, 4);
  for (const char c : text) AppendLittle(out, static_cast<unsigned char>(c), 2);
  AppendLittle(out, 0, 2);
}

std::string Encode(uint8_t set, uint8_t id, std::span<const std::byte> payload) {
  std::string out(kMessageMagic, kMagicBytes);
  AppendLittle(out, kDiagnosticsHeaderBytes + payload.size(), 2);
  AppendLittle(out, set, 1);
  AppendLittle(out, id, 1);
  AppendLittle(out, 0, 2);
  absl::StrAppend(&out, AsText(payload));
  return out;
}

struct Message {
  uint8_t set = 0;
  uint8_t id = 0;
  std::span<const std::byte> payload;
};

// The size is judged here and trusted by the callers.
absl::StatusOr<std::optional<Message>> Split(std::span<const std::byte> bytes) {
  const size_t magic_there = std::min(bytes.size(), kMagicBytes);
  if (magic_there > 0 && std::memcmp(bytes.data(), kMessageMagic, magic_there) != 0) {
    return absl::DataLossError("the other side does not speak the .NET diagnostics protocol");
  }
  if (bytes.size() < kDiagnosticsHeaderBytes) return std::optional<Message>();
  const uint16_t size = *LoadAt<uint16_t>(bytes, kMagicBytes);
  if (size < kDiagnosticsHeaderBytes) {
    return absl::DataLossError(absl::StrCat("a diagnostics message that says it has ", size, " bytes"));
  }
  if (bytes.size() < size) return std::optional<Message>();
  return Message{*LoadAt<uint8_t>(bytes, kMagicBytes + 2), *LoadAt<uint8_t>(bytes, kMagicBytes + 3),
                 bytes.subspan(kDiagnosticsHeaderBytes, size - kDiagnosticsHeaderBytes)};
}

// Reads fields from the front of a payload; after one that is not all there everything is empty and ok() is false.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::span<const std::byte> Bytes(uint64_t count) {
    if (!ok_ || count > rest_.size()) {
      ok_ = false;
      return {};
    }
    return std::exchange(rest_, rest_.subspan(count)).first(count);
  }
  template <typename T>
  T Number() {
    return LoadAt<T>(Bytes(sizeof(T)), 0).value_or(0);
  }
  std::string Text() {
    const uint64_t units = Number<uint32_t>();
    if (units == 0) return "";  // an empty text may come without its NUL
    std::span<const std::byte> text = Bytes(2 * units);
    if (text.size() < 2) return "";
    if (text[text.size() - 1] != std::byte{0} || text[text.size() - 2] != std::byte{0}) ok_ = false;
    return Utf8OfUtf16(text.first(text.size() - 2));
  }
  bool ok() const { return ok_; }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace

std::string EncodeDiagnosticsRequest(DiagnosticsCommand command, std::span<const std::byte> payload) {
  const uint16_t code = static_cast<uint16_t>(command);
  return Encode(static_cast<uint8_t>(code >> 8), static_cast<uint8_t>(code & 0xFF), payload);
}

std::string EncodeEnablePerfMap(PerfMapKind kind) {
  std::string payload;
  AppendLittle(payload, static_cast<uint32_t>(kind), 4);
  return EncodeDiagnosticsRequest(DiagnosticsCommand::kEnablePerfMap, AsBytes(payload));
}

std::string EncodeCollectTracing(DiagnosticsCommand command, const TracingRequest& request) {
  constexpr uint32_t kNettrace = 1;
  std::string payload;
  AppendLittle(payload, request.buffer_megabytes, 4);
  AppendLittle(payload, kNettrace, 4);
  AppendLittle(payload, 0, 1);  // no words at the end on all methods that there are
  if (command == DiagnosticsCommand::kCollectTracing3) AppendLittle(payload, request.stacks ? 1 : 0, 1);
  AppendLittle(payload, 1, 4);  // one provider
  AppendLittle(payload, request.keywords, 8);
  AppendLittle(payload, request.level, 4);
  AppendText(payload, request.provider);
  AppendLittle(payload, 0, 4);  // no filter
  return EncodeDiagnosticsRequest(command, AsBytes(payload));
}

absl::StatusOr<uint64_t> ParseTracingSession(std::span<const std::byte> payload) {
  const std::optional<uint64_t> session = LoadAt<uint64_t>(payload, 0);
  if (!session.has_value()) return absl::DataLossError("a session of events without a number");
  return *session;
}

std::string EncodeStopTracing(uint64_t session) {
  std::string payload;
  AppendLittle(payload, session, 8);
  return EncodeDiagnosticsRequest(DiagnosticsCommand::kStopTracing, AsBytes(payload));
}

std::string EncodeAttachProfiler(const AttachRequest& request) {
  std::string payload;
  AppendLittle(payload, request.timeout_seconds, 4);
  absl::StrAppend(&payload, AsText(request.profiler));
  AppendText(payload, request.path);
  AppendLittle(payload, request.data.size(), 4);
  absl::StrAppend(&payload, request.data);
  return EncodeDiagnosticsRequest(DiagnosticsCommand::kAttachProfiler, AsBytes(payload));
}

std::string EncodeDiagnosticsReply(std::optional<uint32_t> error, std::span<const std::byte> payload) {
  if (!error.has_value()) return Encode(kServerSet, kOk, payload);
  std::string hresult;
  AppendLittle(hresult, *error, 4);
  return Encode(kServerSet, kError, AsBytes(hresult));
}

absl::StatusOr<std::optional<DiagnosticsRequest>> ParseDiagnosticsRequest(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const std::optional<Message> message, Split(bytes));
  if (!message.has_value()) return std::optional<DiagnosticsRequest>();
  if (message->set == kServerSet) return absl::DataLossError("a reply where a request was expected");
  return DiagnosticsRequest{static_cast<DiagnosticsCommand>(message->set << 8 | message->id), message->payload};
}

absl::StatusOr<std::optional<DiagnosticsReply>> ParseDiagnosticsReply(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const std::optional<Message> message, Split(bytes));
  if (!message.has_value()) return std::optional<DiagnosticsReply>();
  const Message& reply = *message;
  if (reply.set != kServerSet || (reply.id != kOk && reply.id != kError)) {
    return absl::DataLossError(absl::StrCat("a diagnostics reply of command set ", reply.set, ", id ", reply.id));
  }
  if (reply.id == kOk) return DiagnosticsReply{std::nullopt, reply.payload};
  const std::optional<uint32_t> hresult = LoadAt<uint32_t>(reply.payload, 0);
  if (!hresult.has_value()) return absl::DataLossError("a diagnostics refusal without a reason");
  return DiagnosticsReply{*hresult, reply.payload};
}

absl::StatusOr<RuntimeProcessInfo> ParseRuntimeProcessInfo(DiagnosticsCommand command,
                                                           std::span<const std::byte> payload) {
  const bool third = command == DiagnosticsCommand::kProcessInfo3;
  const bool second = third || command == DiagnosticsCommand::kProcessInfo2;
  Fields fields(payload);
  RuntimeProcessInfo info;
  if (third) fields.Number<uint32_t>();  // version of the layout; new fields come behind the ones read here
  info.pid = fields.Number<uint64_t>();
  const std::span<const std::byte> cookie = fields.Bytes(info.cookie.size());
  std::copy(cookie.begin(), cookie.end(), info.cookie.begin());
  info.command_line = fields.Text();
  info.operating_system = fields.Text();
  info.architecture = fields.Text();
  if (second) {
    info.entry_assembly = fields.Text();
    info.runtime_version = fields.Text();
  }
  if (third) info.runtime_identifier = fields.Text();
  if (!fields.ok()) return absl::DataLossError("a process info that ends inside a field");
  return info;
}

std::string DiagnosticsErrorText(uint32_t hresult) {
  switch (hresult) {
    case kDiagnosticsUnknownCommand:
      return "the runtime does not know the command (older than .NET 8)";
    case 0x80070057:
      return "the runtime refused the argument";
    case 0x80131384:
      return "the runtime could not read the message";
    default:
      return absl::StrFormat("the runtime answered with error 0x%08x", hresult);
  }
}

}  // namespace clrsampler
