#include "symbols/native_lines/line_reader.h"

#include <algorithm>
#include <string>

namespace clrsampler {

LineReader::Table& LineReader::Of(uint64_t file, UniqueFd fd) {
  const auto known = std::find_if(tables_.begin(), tables_.end(), [&](const auto& one) { return one.first == file; });
  if (known != tables_.end()) {
    tables_.splice(tables_.begin(), tables_, known);
    return tables_.front().second;
  }
  if (tables_.size() >= kMaxTables) tables_.pop_back();  // before the next one takes memory
  tables_.emplace_front(file, open_(std::move(fd)));
  return tables_.front().second;
}

LineAnswer LineReader::Answer(const LineQuestion& question, UniqueFd file) {
  LineAnswer answer;
  answer.number = question.number;
  Table& table = Of(question.file, std::move(file));
  if (!table.ok()) {
    const std::string why(table.status().message());
    answer.failure = why.empty() ? "it can't be read" : why;
    return answer;
  }
  for (const uint64_t address : question.addresses) answer.lines.push_back((*table)->At(address));
  return answer;
}

}  // namespace clrsampler
