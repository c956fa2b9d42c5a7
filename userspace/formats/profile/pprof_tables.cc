#include "formats/profile/pprof_tables.h"

#include <limits>

#include "formats/profile/pprof_fields.h"
#include "formats/profile/pprof_message.h"
#include "protozero/pbf_message.hpp"

namespace clrsampler {
namespace {

constexpr size_t kMaxComments = 1024;  // that are looked at

PprofUnitTypes ReadValueType(protozero::data_view bytes) {
  PprofUnitTypes types;
  ForEachField<pprof::ValueType>(bytes, [&](auto& field) {
    if (field.tag() == pprof::ValueType::kType) return TakeNumber(field, types.type);
    if (field.tag() == pprof::ValueType::kUnit) return TakeNumber(field, types.unit);
    return false;
  });
  return types;
}

void ReadMapping(protozero::data_view bytes, PprofFile& file) {
  uint64_t id = 0;
  PprofMapping entry;
  ForEachField<pprof::Mapping>(bytes, [&](auto& field) {
    if (field.tag() == pprof::Mapping::kId) return TakeNumber(field, id);
    if (field.tag() == pprof::Mapping::kFilename) return TakeNumber(field, entry.filename);
    if (field.tag() == pprof::Mapping::kBuildId) return TakeNumber(field, entry.build_id);
    return false;
  });
  file.mappings[id] = entry;
}

void ReadFunction(protozero::data_view bytes, PprofFile& file) {
  uint64_t id = 0;
  PprofFunction entry;
  ForEachField<pprof::Function>(bytes, [&](auto& field) {
    if (field.tag() == pprof::Function::kId) return TakeNumber(field, id);
    if (field.tag() == pprof::Function::kName) return TakeNumber(field, entry.name);
    if (field.tag() == pprof::Function::kSystemName) return TakeNumber(field, entry.system_name);
    if (field.tag() == pprof::Function::kFilename) return TakeNumber(field, entry.filename);
    return false;
  });
  file.functions[id] = entry;
}

PprofLine ReadLine(protozero::data_view bytes) {
  PprofLine entry;
  uint64_t line = 0, column = 0;
  ForEachField<pprof::Line>(bytes, [&](auto& field) {
    if (field.tag() == pprof::Line::kFunctionId) return TakeNumber(field, entry.function);
    if (field.tag() == pprof::Line::kLine) return TakeNumber(field, line);
    if (field.tag() == pprof::Line::kColumn) return TakeNumber(field, column);
    return false;
  });
  const auto narrow = [](uint64_t value) {
    return value <= std::numeric_limits<uint32_t>::max() ? static_cast<uint32_t>(value) : 0;
  };
  entry.line = narrow(line);
  entry.column = narrow(column);
  return entry;
}

void ReadLocation(protozero::data_view bytes, PprofFile& file) {
  uint64_t id = 0;
  PprofLocation entry;
  entry.lines_begin = static_cast<uint32_t>(file.lines.size());
  ForEachField<pprof::Location>(bytes, [&](auto& field) {
    if (field.tag() == pprof::Location::kId) return TakeNumber(field, id);
    if (field.tag() == pprof::Location::kMappingId) return TakeNumber(field, entry.mapping);
    if (field.tag() == pprof::Location::kAddress) return TakeNumber(field, entry.address);
    if (field.tag() != pprof::Location::kLine || !IsMessage(field)) return false;
    const PprofLine line = ReadLine(field.get_view());
    // More than a location may have: refused when it is needed.
    if (file.lines.size() - entry.lines_begin <= kMaxPprofLines) file.lines.push_back(line);
    return true;
  });
  entry.lines_end = static_cast<uint32_t>(file.lines.size());
  file.locations[id] = entry;
}

}  // namespace

PprofFile ReadPprofTables(absl::string_view bytes) {
  PprofFile file;
  const protozero::data_view view(bytes.data(), bytes.size());
  ForEachField<pprof::Profile>(view, [&](auto& field) {
    uint64_t number = 0;
    if (file.full()) return false;  // which Read refuses
    switch (field.tag()) {
      case pprof::Profile::kSampleType:
        if (!IsMessage(field)) return false;
        // One more than there may be, which Read refuses.
        if (file.sample_types.size() > kMaxPprofSampleTypes) return false;
        file.sample_types.push_back(ReadValueType(field.get_view()));
        return true;
      case pprof::Profile::kPeriodType:
        if (!IsMessage(field)) return false;
        file.period_type = ReadValueType(field.get_view());
        return true;
      case pprof::Profile::kMapping:
        if (!IsMessage(field)) return false;
        ReadMapping(field.get_view(), file);
        return true;
      case pprof::Profile::kLocation:
        if (!IsMessage(field)) return false;
        ReadLocation(field.get_view(), file);
        return true;
      case pprof::Profile::kFunction:
        if (!IsMessage(field)) return false;
        ReadFunction(field.get_view(), file);
        return true;
      case pprof::Profile::kStringTable: {
        if (!IsMessage(field)) return false;
        const protozero::data_view text = field.get_view();
        file.texts.push_back({static_cast<uint32_t>(text.data() - bytes.data()), static_cast<uint32_t>(text.size())});
        return true;
      }
      case pprof::Profile::kTimeNanos:
        if (!TakeNumber(field, number)) return false;
        file.time_nanos = static_cast<int64_t>(number);
        return true;
      case pprof::Profile::kDurationNanos:
        if (!TakeNumber(field, number)) return false;
        file.duration_nanos = static_cast<int64_t>(number);
        return true;
      case pprof::Profile::kPeriod:
        if (!TakeNumber(field, number)) return false;
        file.period = static_cast<int64_t>(number);
        return true;
      case pprof::Profile::kComment:
        return TakeNumbers(field, kMaxComments, file.comments);
      case pprof::Profile::kDefaultSampleType:
        return TakeNumber(field, file.default_type);
      case pprof::Profile::kSample:
        return false;  // when the tables are there
    }
    return false;
  });
  return file;
}

}  // namespace clrsampler
