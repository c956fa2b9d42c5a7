#include "output/html_code.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "disassembly/disassembler.h"
#include "output/code_view.h"

namespace clrsampler {
namespace {

void WriteBody(const ProfileModel& model, const ModelCode& code, uint32_t frame, const std::vector<CodeRow>& rows,
               JsonStream& json) {
  std::vector<StringIndex> files;
  absl::flat_hash_map<StringIndex, uint32_t> numbers;  // and one more
  for (const CodeRow& row : rows) {
    if (row.place.second != 0 && numbers.try_emplace(row.place.first, files.size() + 1).second) {
      files.push_back(row.place.first);
    }
  }
  const auto column = [&](absl::string_view name, auto value) {
    json.Raw(",\"").Raw(name).Raw("\":").Array(rows.size(), [&](size_t i) { json.Number(value(rows[i])); });
  };
  json.Raw("{\"frame\":").Number(frame).Raw(",\"what\":").String(BodyText(model, code));
  json.Raw(",\"files\":").Array(files.size(), [&](size_t i) { json.String(model.text(files[i])); });
  column("offset", [](const CodeRow& row) { return row.offset; });
  column("file", [&](const CodeRow& row) { return row.place.second == 0 ? 0 : numbers.at(row.place.first); });
  column("line", [](const CodeRow& row) { return row.place.second; });
  column("self", [](const CodeRow& row) { return row.samples; });
  json.Raw(",\"text\":").Array(rows.size(), [&](size_t i) { json.String(rows[i].text); }).Raw("}");
}

}  // namespace

void WriteHtmlCode(const ProfileModel& model, std::span<const uint32_t> frames, JsonStream& json) {
  const absl::StatusOr<Disassembler> disassembler = Disassembler::Open();
  std::vector<size_t> sampled;
  for (size_t i = 0; i < model.code.size(); ++i) {
    if (!model.code[i].self.empty()) sampled.push_back(i);
  }
  json.Raw(",\n\"code\":").Array(sampled.size(), [&](size_t i) {
    const ModelCode& code = model.code[sampled[i]];
    const std::vector<Instruction> instructions =
        disassembler.ok() ? disassembler->All(code.machine, code.bytes, code.address) : std::vector<Instruction>();
    WriteBody(model, code, frames[sampled[i]], CodeRows(code, instructions), json.Raw("\n"));
  });
}

}  // namespace clrsampler
