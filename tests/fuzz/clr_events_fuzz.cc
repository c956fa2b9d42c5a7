// Properties: a payload that is understood stays so with more bytes behind it, and says the same; no text is longer
// than the payload allows.
#include <cstdint>
#include <string>
#include <variant>

#include "formats/byte_reader.h"
#include "formats/nettrace/clr_events.h"

namespace clrsampler {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

size_t TextBytes(const ClrEvent& event) {
  if (const auto* exception = std::get_if<ClrException>(&event.what)) {
    return exception->type.size() + exception->message.size();
  }
  if (const auto* method = std::get_if<ClrMethod>(&event.what)) {
    return method->type.size() + method->name.size() + method->signature.size();
  }
  if (const auto* tick = std::get_if<ClrAllocationTick>(&event.what)) return tick->type.size();
  if (const auto* module = std::get_if<ClrModule>(&event.what)) return module->path.size();
  if (const auto* assembly = std::get_if<ClrAssembly>(&event.what)) return assembly->name.size();
  return 0;
}

void Check(uint32_t event_id, uint32_t version, uint32_t pointer_bytes, absl::string_view payload) {
  const auto event = ParseClrEvent(event_id, version, pointer_bytes, AsBytes(payload));
  if (!event.ok() || !event->has_value()) return;
  // A UTF-16 unit makes at most three bytes of UTF-8, and so does the mark of a text that was cut.
  Require(2 * TextBytes(**event) <= 3 * payload.size() + 3 * 6);
  const auto longer = ParseClrEvent(event_id, version, pointer_bytes, AsBytes(std::string(payload) + "more"));
  Require(longer.ok() && longer->has_value() && (*longer)->kind == (*event)->kind);
  Require(TextBytes(**longer) == TextBytes(**event));
}

}  // namespace
}  // namespace clrsampler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;  // NOLINT
  if (size < 2) return 0;
  Check(data[0], data[1] & 7, (data[1] & 8) != 0 ? 4 : 8, {reinterpret_cast<const char*>(data) + 2, size - 2});
  return 0;
}
