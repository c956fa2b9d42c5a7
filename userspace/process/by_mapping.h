// Facts about mappings of files, kept for as long as a process has them as they were.
#ifndef CLRSAMPLER_PROCESS_BY_MAPPING_H_
#define CLRSAMPLER_PROCESS_BY_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "process/mappings.h"
#include "process/per_process.h"
#include "process/process.h"
#include "process/process_key.h"

namespace clrsampler {

template <typename Value>
class ByMapping {
 public:
  // `on_end`: what is to be done when the facts about a process have gone with its program.
  explicit ByMapping(std::function<void()> on_end = nullptr)
      : by_process_([on_end = std::move(on_end)](ProcessKey, Facts& gone) {
          gone.clear();
          if (on_end) on_end();
        }) {}

  // The most entries of one process. A process that loads and unloads for days has them found out again.
  static constexpr size_t kMaxKept = 16 * 1024;

  // A fresh Value where another mapping, or none, was known. Valid until the next call.
  Value& Of(const Process& process, const Mapping& mapping) {
    auto& known = by_process_.Of(process);
    if (known.size() >= kMaxKept) known.clear();
    Entry& entry = known[mapping.start];
    if (const auto identity = MappingIdentity::Of(mapping); entry.identity != identity) entry = {identity, Value()};
    return entry.value;
  }

  // Without what values hold.
  size_t heap_bytes() const {
    size_t bytes = 0;
    for (const auto& [process, known] : by_process_) {
      bytes += known.capacity() * (sizeof(std::pair<const uint64_t, Entry>) + 1);
    }
    return bytes;
  }

 private:
  struct Entry {
    MappingIdentity identity;
    Value value;
  };

  using Facts = absl::flat_hash_map<uint64_t, Entry>;

  PerProcess<Facts> by_process_;  // by mapping start
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_BY_MAPPING_H_
