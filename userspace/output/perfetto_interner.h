// The tables that packets of a Perfetto trace refer to: texts, mappings, frames, callstacks, threads.
//
// An entry is written once, in the packet that needs it first. Its number is that of the model's table plus one, since
// 0 is none.
//
// trace_processor tells frames of a mapping apart by name and place in the image alone, and frames without a mapping by
// name, file and line. So a frame with a line has no mapping, or all lines of its method would be the first one.
#ifndef CLRSAMPLER_OUTPUT_PERFETTO_INTERNER_H_
#define CLRSAMPLER_OUTPUT_PERFETTO_INTERNER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"
#include "output/perfetto_fields.h"

namespace clrsampler {

class PerfettoInterner {
 public:
  // The model is borrowed.
  explicit PerfettoInterner(const ProfileModel& model) : model_(model) {}

  // The number of the stack that ends there. A stack without frames has one that says so: else no viewer shows it.
  uint64_t Callstack(NodeIndex leaf);
  // `tid` 0: the whole process.
  uint64_t Task(uint32_t pid, uint32_t tid);

  // The entries that have come since the last time, an encoded InternedData; "": nothing.
  std::string TakeNew() { return std::exchange(new_, {}); }

 private:
  using Key = std::pair<perfetto::Interned, uint64_t>;  // table, number

  bool IsNew(perfetto::Interned table, uint64_t number) { return written_.insert(Key(table, number)).second; }
  void Append(perfetto::Interned table, const std::string& entry);
  uint64_t Text(perfetto::Interned table, uint64_t number, absl::string_view text);
  uint64_t Frame(FrameIndex index);
  uint64_t Mapping(const ModelFrame& frame);
  uint64_t FrameOfNoStack();

  const ProfileModel& model_;
  std::string new_;
  absl::flat_hash_set<Key> written_;
  absl::flat_hash_map<std::pair<std::string, StringIndex>, uint64_t> mappings_;  // by name and build id
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint64_t> tasks_;           // by pid and tid
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_PERFETTO_INTERNER_H_
