// A sink that writes down what it is told, and the loop of a caller that obeys FeedResult.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_JIT_COLLECTED_JITDUMP_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_JIT_COLLECTED_JITDUMP_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/jit/jitdump_parser.h"

namespace clrsampler {

class CollectedJitdump : public JitdumpSink {
 public:
  explicit CollectedJitdump(bool debug_info = true) : debug_info_(debug_info) {}

  void OnHeader(const JitdumpHeader& h) override {
    log.push_back(absl::StrCat("header ", h.version, " ", h.header_bytes, " ", h.elf_machine, " pid ", h.pid, " at ",
                               h.timestamp, h.arch_timestamps ? " arch" : "", h.big_endian ? " big" : ""));
  }
  void OnLoad(const JitdumpLoad& l) override {
    names.emplace_back(l.name);
    loads.push_back(
        absl::StrCat(l.timestamp, " ", absl::Hex(l.code_address), " ", absl::Hex(l.code_size), " ", l.name));
    log.push_back(absl::StrCat("load ", loads.back(), " vma ", l.vma, " pid ", l.pid, " tid ", l.tid, " index ",
                               l.code_index, " name@", l.name_offset, " body@", l.body_offset, "+", l.body_bytes));
  }
  void OnMove(const JitdumpMove& m) override {
    log.push_back(absl::StrCat("move ", m.timestamp, " ", m.pid, " ", m.tid, " ", m.vma, " ", m.old_code_address, " ",
                               m.new_code_address, " ", m.code_size, " ", m.code_index));
  }
  bool WantsDebugInfo() const override { return debug_info_; }
  void OnDebugInfo(const JitdumpDebugInfo& d) override {
    std::string text = absl::StrCat("debug ", d.timestamp, " ", d.code_address, " of ", d.announced_entries);
    for (const JitdumpDebugEntry& e : d.entries) {
      absl::StrAppend(&text, " [", e.address, " ", e.line, " ", e.discriminator, " ", e.file, "]");
    }
    log.push_back(text);
  }
  void OnUnwinding(const JitdumpUnwinding& u) override {
    log.push_back(absl::StrCat("unwinding ", u.timestamp, " ", u.unwind_data_size, " ", u.eh_frame_header_size, " ",
                               u.mapped_size, " data@", u.data_offset, "+", u.data_bytes));
  }
  void OnClose(uint64_t timestamp) override { log.push_back(absl::StrCat("close ", timestamp)); }
  void OnUnknown(uint32_t id, uint32_t size) override { log.push_back(absl::StrCat("unknown ", id, " ", size)); }

  std::vector<std::string> names;
  std::vector<std::string> loads;  // as in tests/testdata/jitdump/*.expected
  std::vector<std::string> log;

 private:
  bool debug_info_;
};

// Offers `file` as it would look when it ended at each of `ends`, one after the other.
inline absl::Status FeedGrowing(absl::string_view file, const std::vector<size_t>& ends, JitdumpSink& sink) {
  JitdumpParser parser;
  for (const size_t end : ends) {
    while (parser.offset() < end) {
      const absl::StatusOr<FeedResult> fed =
          parser.Feed(AsBytes(file.substr(parser.offset(), end - parser.offset())), sink);
      if (!fed.ok()) return fed.status();
      if (fed->used == 0 && fed->skip == 0) break;
    }
  }
  return absl::OkStatus();
}

inline absl::Status FeedAll(absl::string_view file, JitdumpSink& sink) {
  return FeedGrowing(file, {file.size()}, sink);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_JIT_COLLECTED_JITDUMP_H_
