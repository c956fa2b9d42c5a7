// Any bytes as a process context's header, its payload, and the environment of a process. Properties: labels are short,
// well-formed and without control characters, and the size of a payload is bounded.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"
#include "formats/labels/environment_labels.h"
#include "formats/labels/process_context.h"
#include "formats/names/utf8.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void Check(const ProcessLabels& labels) {
  labels.ForEach([](absl::string_view name, const std::string& value) {
    Require(!value.empty() && value.size() <= kMaxLabelBytes && LabelKeyOf(name).has_value());
    Require(WellFormedUtf8(value) == value);
    for (const char c : value) Require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto header = ParseContextHeader(AsBytes(text));
  if (header.ok()) Require(header->published_ns == 0 || header->payload_bytes <= kMaxContextBytes);
  if (const auto labels = ParseContextPayload(AsBytes(text)); labels.ok()) Check(*labels);
  Check(EnvironmentLabels(text));
  return 0;
}
