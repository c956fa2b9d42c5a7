#include "output/code_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/summary.h"

namespace clrsampler {

CodePlace PlaceAt(const ModelCode& code, uint32_t offset) {
  const auto after = std::upper_bound(code.lines.begin(), code.lines.end(), offset,
                                      [](uint32_t at, const ModelCodeLine& line) { return at < line.offset; });
  if (after == code.lines.begin() || std::prev(after)->line == 0) return {};
  return {std::prev(after)->file, std::prev(after)->line};
}

std::vector<CodeRow> CodeRows(const ModelCode& code, const std::vector<Instruction>& instructions) {
  std::vector<CodeRow> rows;
  if (instructions.empty()) {
    rows.reserve(code.self.size());
    for (const ModelCodeWeight& at : code.self) rows.push_back({at.offset, "", PlaceAt(code, at.offset), at.weight});
    return rows;
  }
  rows.reserve(instructions.size());
  auto self = code.self.begin();
  for (const Instruction& instruction : instructions) {
    CodeRow& row =
        rows.emplace_back(CodeRow{instruction.offset, instruction.text, PlaceAt(code, instruction.offset), 0});
    for (; self != code.self.end() && self->offset < uint64_t{instruction.offset} + instruction.size; ++self) {
      row.samples += self->weight;
    }
  }
  return rows;
}

uint64_t SamplesOf(const ModelCode& code) {
  uint64_t sum = 0;
  for (const ModelCodeWeight& at : code.self) sum += at.weight;
  return sum;
}

std::string BodyText(const ProfileModel& model, const ModelCode& code) {
  const ModelFrame& frame = model.frames[code.frame];
  const absl::string_view tier = model.text(frame.tier);
  return absl::StrFormat("%s, %s, %d bytes at %x%s",
                         tier.empty() ? std::string(ModelFrameKindText(frame.kind)) : PrintableText(tier),
                         std::string(CodeMachineText(code.machine)), code.bytes.size(), code.address,
                         code.pid == 0 ? "" : absl::StrCat(" in process ", code.pid));
}

}  // namespace clrsampler
