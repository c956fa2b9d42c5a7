// Properties: where read() happened to stop does not matter. Every reported name is found again at its offset. Every
// line of the file is counted once, with an end of its own or glued to the next one.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/jit/perf_map_parser.h"

namespace clrsampler {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

class Collected : public PerfMapSink {
 public:
  explicit Collected(absl::string_view file, bool unended = false) : file_(file), unended_(unended) {}
  void OnLine(const PerfMapLine& line) override {
    bool ended = false;
    Require(line.name_offset < file_.size());
    Require(PerfMapParser::NameAt(file_.substr(line.name_offset), ended) == line.name && ended != unended_);
    Require(!line.name.empty() && line.name.find('\0') == absl::string_view::npos);
    Require(line.name_offset >= names_end_);
    names_end_ = line.name_offset + line.name.size();
    lines.push_back(absl::StrCat(line.start, " ", line.size, " ", line.name));
  }
  std::vector<std::string> lines;

 private:
  absl::string_view file_;
  bool unended_;
  uint64_t names_end_ = 0;
};

std::vector<std::string> Feed(absl::string_view file, size_t split) {
  Collected seen(file);
  PerfMapParser parser;
  for (const size_t end : {split, file.size()}) {
    Require(parser.Feed(AsBytes(file.substr(parser.offset(), end - parser.offset())), seen).ok());
  }
  const PerfMapCounters& counters = parser.counters();
  const auto require_all_counted = [&] {
    Require(counters.lines == seen.lines.size());
    Require(counters.lines + counters.bad_lines ==
            static_cast<uint64_t>(std::count(file.begin(), file.end(), '\n')) + counters.glued_lines);
  };
  require_all_counted();
  std::vector<std::string> lines = seen.lines;
  const absl::string_view rest = file.substr(parser.offset());
  Collected last(file, true);
  const bool taken = parser.TakeUnended(AsBytes(rest), last);
  Require(taken == (last.lines.size() == 1));
  Require(parser.offset() == file.size() - (taken ? 0 : rest.size()));
  seen.lines.insert(seen.lines.end(), last.lines.begin(), last.lines.end());
  require_all_counted();
  return lines;
}

}  // namespace
}  // namespace clrsampler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;  // NOLINT
  if (size < 2 || size > PerfMapParser::kMaxLineBytes) return 0;
  const absl::string_view file(reinterpret_cast<const char*>(data) + 2, size - 2);
  Require(Feed(file, (data[0] | size_t{data[1]} << 8) % (file.size() + 1)) == Feed(file, file.size()));
  return 0;
}
