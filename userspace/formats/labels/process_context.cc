#include "formats/labels/process_context.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/labels/field_bytes.h"
#include "protozero/exception.hpp"
#include "protozero/pbf_message.hpp"

namespace clrsampler {
namespace {

using protozero::data_view;
using protozero::pbf_message;
using protozero::pbf_wire_type;

constexpr absl::string_view kSignature = "OTEL_CTX";
constexpr uint32_t kVersion = 2;
constexpr size_t kMaxAttributes = 1000;

enum class Context : protozero::pbf_tag_type { kResource = 1 };
enum class Resource : protozero::pbf_tag_type { kAttributes = 1 };
enum class KeyValue : protozero::pbf_tag_type { kKey = 1, kValue = 2 };
enum class AnyValue : protozero::pbf_tag_type { kString = 1 };

void AddAttribute(data_view attribute, ProcessLabels& labels) {
  const std::optional<data_view> name = BytesOf(attribute, KeyValue::kKey);
  const std::optional<data_view> value = BytesOf(attribute, KeyValue::kValue);
  if (!name || !value) return;
  const std::optional<LabelKey> key = LabelKeyOf(TextOf(*name));
  const std::optional<data_view> text = BytesOf(*value, AnyValue::kString);
  if (key && text && labels.Get(*key).empty()) labels.Set(*key, TextOf(*text));
}

ProcessLabels ReadPayload(data_view bytes) {
  ProcessLabels labels;
  const std::optional<data_view> resource = BytesOf(bytes, Context::kResource);
  if (!resource) return labels;
  size_t attributes = 0;
  pbf_message<Resource> message(*resource);
  while (message.next()) {
    if (message.tag() == Resource::kAttributes && message.wire_type() == pbf_wire_type::length_delimited &&
        attributes++ < kMaxAttributes) {
      AddAttribute(message.get_view(), labels);
    } else {
      message.skip();
    }
  }
  return labels;
}

}  // namespace

bool IsContextMapping(absl::string_view path) {
  return absl::StartsWith(path, "[anon_shmem:OTEL_CTX]") || absl::StartsWith(path, "[anon:OTEL_CTX]") ||
         absl::StartsWith(path, "/memfd:OTEL_CTX");
}

absl::StatusOr<ContextHeader> ParseContextHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < kContextHeaderBytes || AsText(bytes.subspan(0, kSignature.size())) != kSignature) {
    return absl::InvalidArgumentError("it does not begin with OTEL_CTX");
  }
  const uint32_t version = *LoadAt<uint32_t>(bytes, 8);
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("it is of version ", version, ", and only 2 is known"));
  }
  ContextHeader header;
  header.payload_bytes = *LoadAt<uint32_t>(bytes, 12);
  header.published_ns = *LoadAt<uint64_t>(bytes, 16);
  header.payload = *LoadAt<uint64_t>(bytes, 24);
  // While the process changes it, the size means nothing.
  if (header.published_ns != 0 && header.payload_bytes > kMaxContextBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it says to have ", header.payload_bytes, " bytes, more than ", kMaxContextBytes));
  }
  return header;
}

absl::StatusOr<ProcessLabels> ParseContextPayload(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxContextBytes) return absl::ResourceExhaustedError("it is too large");
  try {  // protozero's way to say that bytes are no protobuf message; nothing of ours throws
    return ReadPayload({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const protozero::exception&) {
    return absl::InvalidArgumentError("its bytes are no protobuf message");
  }
}

}  // namespace clrsampler
