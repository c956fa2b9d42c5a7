// Properties: where read() happened to stop does not matter; nothing that is reported lies outside of the file's own
// claims; what JitdumpWriter writes is read back.
#include <cstdint>
#include <string>
#include <vector>

#include "formats/jit/jitdump_writer.h"
#include "unit/formats/jit/collected_jitdump.h"

namespace clrsampler {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

struct Outcome {
  std::vector<std::string> log;
  std::string error;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome Feed(absl::string_view file, const std::vector<size_t>& ends, bool debug_info) {
  CollectedJitdump seen(debug_info);
  const absl::Status status = FeedGrowing(file, ends, seen);
  return {std::move(seen.log), std::string(status.message())};
}

class Checker : public JitdumpSink {
 public:
  void OnHeader(const JitdumpHeader& header) override { writer.Header(header); }
  void OnLoad(const JitdumpLoad& load) override {
    Require(load.name.size() <= JitdumpParser::kMaxNameBytes);
    Require(load.name.find('\0') == absl::string_view::npos);
    Require(load.body_offset == load.name_offset + load.name.size() + 1);
    Require(load.body_bytes <= JitdumpParser::kMaxRecordBytes);
    writer.Load(load, {});
    names.emplace_back(load.name);
  }
  JitdumpWriter writer;
  std::vector<std::string> names;
};

}  // namespace
}  // namespace clrsampler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;  // NOLINT
  if (size < 2) return 0;
  const absl::string_view file(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t split = (data[0] | size_t{data[1]} << 8) % (file.size() + 1);
  for (const bool debug_info : {false, true}) {
    Require(Feed(file, {file.size()}, debug_info) == Feed(file, {split, file.size()}, debug_info));
  }
  Checker first;
  (void)FeedAll(file, first).ok();
  if (first.writer.bytes().empty()) return 0;
  Checker again;
  Require(FeedAll(first.writer.bytes(), again).ok());
  Require(first.names == again.names);
  return 0;
}
