#include "output/event_line.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/summary.h"
#include "profile/suspension_tracker.h"

namespace clrsampler {
namespace {

using Json = nlohmann::ordered_json;

std::string Hex(uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

// A field that the runtime does not say is left out.
void PutText(Json& fields, const char* name, absl::string_view text) {
  if (!text.empty()) fields[name] = std::string(text);
}
void PutNumber(Json& fields, const char* name, uint64_t value) {
  if (value != 0) fields[name] = value;
}
void PutAddress(Json& fields, const char* name, uint64_t value) {
  if (value != 0) fields[name] = Hex(value);
}
void PutFlag(Json& fields, const char* name, bool flag) {
  if (flag) fields[name] = true;
}

void Put(Json& /*fields*/, const std::monostate& /*nothing*/) {}
void Put(Json& fields, const ClrThread& thread) {
  PutNumber(fields, "tid", thread.tid);
  PutText(fields, "name", thread.name);
  PutNumber(fields, "managed_id", thread.managed_id);
  PutAddress(fields, "runtime_thread", thread.runtime_thread);
}
void Put(Json& fields, const ClrAssembly& assembly) {
  PutText(fields, "name", assembly.name);
  PutAddress(fields, "assembly", assembly.assembly);
}
void Put(Json& fields, const ClrModule& module) {
  PutText(fields, "path", module.path);
  PutAddress(fields, "module", module.module);
  PutAddress(fields, "assembly", module.assembly);
}
void Put(Json& fields, const ClrMethod& method) {
  PutText(fields, "type", method.type);
  PutText(fields, "method", method.name);
  PutText(fields, "signature", method.signature);
  PutText(fields, "tier", method.tier);
  PutNumber(fields, "il_bytes", method.il_bytes);
  PutNumber(fields, "bytes", method.code_bytes);
  PutAddress(fields, "address", method.address);
  PutFlag(fields, "dynamic", method.dynamic);
  PutAddress(fields, "method_id", method.method);
  PutAddress(fields, "module", method.module);
}
void Put(Json& fields, const ClrException& exception) {
  PutText(fields, "type", exception.type);
  PutText(fields, "message", exception.message);
  PutAddress(fields, "hresult", exception.hresult);
  PutAddress(fields, "address", exception.address);
  PutFlag(fields, "has_inner", exception.has_inner);
  PutFlag(fields, "nested", exception.nested);
  PutFlag(fields, "rethrown", exception.rethrown);
}
void Put(Json& fields, const ClrHandler& handler) {
  PutText(fields, "method", handler.method_name);
  PutAddress(fields, "address", handler.address);
  PutAddress(fields, "method_id", handler.method);
}
void Put(Json& fields, const ClrContention& contention) {
  if (contention.duration_ns.has_value()) fields["duration_ns"] = *contention.duration_ns;
  PutNumber(fields, "owner", contention.owner);
  PutAddress(fields, "lock", contention.lock);
  PutAddress(fields, "object", contention.object);
}
void Put(Json& fields, const ClrSuspension& suspension) {
  PutText(fields, "reason", SuspendReasonText(suspension.reason));
}
void Put(Json& fields, const ClrCollection& collection) {
  fields["generation"] = collection.generation;
  PutNumber(fields, "number", collection.number);
  PutText(fields, "type", collection.type);
  // One that ends says no reason, and its number would read as one.
  if (!collection.type.empty()) PutText(fields, "reason", GcReasonText(collection.reason));
}
void Put(Json& fields, const ClrAllocationTick& tick) {
  fields["bytes"] = tick.bytes;
  PutText(fields, "type", tick.type);
  PutText(fields, "heap", tick.heap);
  PutNumber(fields, "object_bytes", tick.object_bytes);
  PutAddress(fields, "object", tick.object);
  PutNumber(fields, "heap_index", tick.heap_index);
  PutAddress(fields, "type_id", tick.type_id);
}

Json FieldsOf(const ClrEvent& event) {
  Json fields = Json::object();
  std::visit([&](const auto& what) { Put(fields, what); }, event.what);
  return fields;
}

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A text is quoted where its end would not be seen.
std::string ValueText(const Json& value) {
  if (!value.is_string()) return Dump(value);
  const auto& text = value.get_ref<const std::string&>();
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) { return c == ' ' || c == '"' || c == '='; });
  return plain ? PrintableText(text) : absl::StrCat("\"", PrintableText(text), "\"");
}

}  // namespace

std::string EventLine(const ClrEventRecord& record, uint64_t first_ns, absl::string_view source) {
  const double seconds = record.time_ns > first_ns ? static_cast<double>(record.time_ns - first_ns) / 1e9 : 0;
  std::string line = absl::StrFormat("%10.6f  %-27s  on %d ", seconds, ClrEventName(record.event.kind), record.tid);
  const Json fields = FieldsOf(record.event);
  for (const auto& [name, value] : fields.items()) absl::StrAppend(&line, " ", name, "=", ValueText(value));
  if (!source.empty()) absl::StrAppend(&line, " source=", source);
  return line;
}

std::string EventJson(const ClrEventRecord& record, uint32_t pid, absl::string_view source) {
  Json json = {{"time_ns", record.time_ns},
               {"pid", pid},
               {"thread", record.tid},
               {"event", std::string(ClrEventName(record.event.kind))},
               {"source", std::string(source)}};
  json.update(FieldsOf(record.event));
  return Dump(json);
}

}  // namespace clrsampler
