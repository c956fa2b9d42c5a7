#include "output/event_line.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/inprocess/library_events.h"
#include "output/summary.h"
#include "profile/suspension_tracker.h"

namespace clrsampler {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string Hex(uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

// A field that the runtime does not say is left out.
void PutText(OrderedJson& fields, const char* name, absl::string_view text) {
  if (!text.empty()) fields[name] = std::string(text);
}
void PutNumber(OrderedJson& fields, const char* name, uint64_t value) {
  if (value != 0) fields[name] = value;
}
void PutAddress(OrderedJson& fields, const char* name, uint64_t value) {
  if (value != 0) fields[name] = Hex(value);
}
void PutFlag(OrderedJson& fields, const char* name, bool flag) {
  if (flag) fields[name] = true;
}

void Put(OrderedJson& /*fields*/, const std::monostate& /*nothing*/) {}
void Put(OrderedJson& fields, const ClrThread& thread) {
  PutNumber(fields, "tid", thread.tid);
  PutText(fields, "name", thread.name);
  PutNumber(fields, "managed_id", thread.managed_id);
  PutAddress(fields, "runtime_thread", thread.runtime_thread);
  PutText(fields, "method", thread.method);
  if (!thread.stack.empty()) fields["stack"] = thread.stack;
}
void Put(OrderedJson& fields, const ClrAssembly& assembly) {
  PutText(fields, "name", assembly.name);
  PutAddress(fields, "assembly", assembly.assembly);
}
void Put(OrderedJson& fields, const ClrModule& module) {
  PutText(fields, "path", module.path);
  PutAddress(fields, "module", module.module);
  PutAddress(fields, "assembly", module.assembly);
}
void Put(OrderedJson& fields, const ClrMethod& method) {
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
void Put(OrderedJson& fields, const ClrException& exception) {
  PutText(fields, "type", exception.type);
  PutText(fields, "message", exception.message);
  PutAddress(fields, "hresult", exception.hresult);
  PutAddress(fields, "address", exception.address);
  PutFlag(fields, "has_inner", exception.has_inner);
  PutFlag(fields, "nested", exception.nested);
  PutFlag(fields, "rethrown", exception.rethrown);
}
void Put(OrderedJson& fields, const ClrHandler& handler) {
  PutText(fields, "method", handler.method_name);
  PutAddress(fields, "address", handler.address);
  PutAddress(fields, "method_id", handler.method);
}
void Put(OrderedJson& fields, const ClrContention& contention) {
  if (contention.duration_ns.has_value()) fields["duration_ns"] = *contention.duration_ns;
  PutNumber(fields, "owner", contention.owner);
  PutAddress(fields, "lock", contention.lock);
  PutAddress(fields, "object", contention.object);
}
void Put(OrderedJson& fields, const ClrSuspension& suspension) {
  PutText(fields, "reason", SuspendReasonText(suspension.reason));
}
void Put(OrderedJson& fields, const ClrCollection& collection) {
  fields["generation"] = collection.generation;
  PutNumber(fields, "number", collection.number);
  PutText(fields, "type", collection.type);
  // An event that ends something has no reason, and its number would read as one.
  if (!collection.type.empty()) PutText(fields, "reason", GcReasonText(collection.reason));
}
void Put(OrderedJson& fields, const ClrAllocationTick& tick) {
  fields["bytes"] = tick.bytes;
  PutText(fields, "type", tick.type);
  PutText(fields, "heap", tick.heap);
  PutNumber(fields, "object_bytes", tick.object_bytes);
  PutAddress(fields, "object", tick.object);
  PutNumber(fields, "heap_index", tick.heap_index);
  PutAddress(fields, "type_id", tick.type_id);
}

OrderedJson FieldsOf(const ClrEvent& event) {
  OrderedJson fields = OrderedJson::object();
  std::visit([&](const auto& what) { Put(fields, what); }, event.what);
  return fields;
}

std::string Dump(const OrderedJson& json) { return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

// A text is quoted where its end would not be seen.
std::string ValueText(const OrderedJson& value) {
  if (!value.is_string()) return Dump(value);
  const auto& text = value.get_ref<const std::string&>();
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) { return c == ' ' || c == '"' || c == '='; });
  return plain ? PrintableText(text) : absl::StrCat("\"", PrintableText(text), "\"");
}

void Put(OrderedJson& fields, const LibraryField& field) {
  switch (field.form) {
    case LibraryFieldForm::kNone:
      return;
    case LibraryFieldForm::kNumber:
      return PutNumber(fields, field.name, field.number);
    case LibraryFieldForm::kCount:
      fields[field.name] = field.number;
      return;
    case LibraryFieldForm::kAddress:
      return PutAddress(fields, field.name, field.number);
    case LibraryFieldForm::kError:
      if ((field.number & 0x80000000) != 0) PutAddress(fields, field.name, field.number);
      return;
    case LibraryFieldForm::kSuspendReason:
      return PutText(fields, field.name, SuspendReasonText(static_cast<uint32_t>(field.number)));
    case LibraryFieldForm::kInduced:
      fields[field.name] = field.number == 1;
      return;
    case LibraryFieldForm::kText:
      return PutText(fields, field.name, field.text);
    case LibraryFieldForm::kTrue:
      return PutFlag(fields, field.name, true);
  }
}

OrderedJson FieldsOf(const LibraryRecord& record) {
  OrderedJson fields = OrderedJson::object();
  for (const LibraryField& field : LibraryFields(record)) Put(fields, field);
  if (record.kind != InprocessKind::kILToNativeMap) return fields;
  // Special places in IL have negative numbers.
  OrderedJson map = OrderedJson::array();
  for (const InprocessMapEntry& entry : record.map) {
    map.push_back({static_cast<int32_t>(entry.il_offset), entry.native_start, entry.native_end});
  }
  fields["map"] = std::move(map);
  return fields;
}

std::string LineOf(uint64_t time_ns, uint64_t first_ns, absl::string_view name, uint64_t tid,
                   const OrderedJson& fields) {
  const double seconds = time_ns > first_ns ? static_cast<double>(time_ns - first_ns) / 1e9 : 0;
  std::string line = absl::StrFormat("%10.6f  %-27s  on %d ", seconds, name, tid);
  for (const auto& [key, value] : fields.items()) absl::StrAppend(&line, " ", key, "=", ValueText(value));
  return line;
}

std::string JsonOf(uint64_t time_ns, uint32_t pid, uint64_t tid, absl::string_view name, absl::string_view source,
                   const OrderedJson& fields) {
  OrderedJson json = {{"time_ns", time_ns},
                      {"pid", pid},
                      {"thread", tid},
                      {"event", std::string(name)},
                      {"source", std::string(source)}};
  json.update(fields);
  return Dump(json);
}

}  // namespace

std::string EventLine(const ClrEventRecord& record, uint64_t first_ns, absl::string_view source) {
  OrderedJson fields = FieldsOf(record.event);
  fields.erase("stack");  // one line has no room for it
  std::string line = LineOf(record.time_ns, first_ns, ClrEventName(record.event.kind), record.tid, fields);
  if (!source.empty()) absl::StrAppend(&line, " source=", source);
  return line;
}

std::string EventJson(const ClrEventRecord& record, uint32_t pid, absl::string_view source) {
  return JsonOf(record.time_ns, pid, record.tid, ClrEventName(record.event.kind), source, FieldsOf(record.event));
}

std::string EventLine(const LibraryRecord& record, uint64_t first_ns) {
  return LineOf(record.time_ns, first_ns, LibraryEventName(record.kind), record.tid, FieldsOf(record));
}

std::string EventJson(const LibraryRecord& record, uint32_t pid) {
  return JsonOf(record.time_ns, pid, record.tid, LibraryEventName(record.kind), "library", FieldsOf(record));
}

}  // namespace clrsampler
