#include "process/mappings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace clrsampler {

MappingKind ClassifyMapping(absl::string_view path, uint64_t inode) {
  if (path.empty() || path == "//anon" || absl::StartsWith(path, "[anon") || path == "[heap]" ||
      absl::StartsWith(path, "[stack") || absl::StartsWith(path, "/memfd:") || absl::StartsWith(path, "/dev/zero") ||
      absl::StartsWith(path, "/SYSV") || absl::StartsWith(path, "/anon_hugepage")) {
    return MappingKind::kJitMemory;
  }
  if (path == "[vdso]") return MappingKind::kVdso;
  if (absl::StartsWith(path, "/dev/shm/") || (path[0] == '/' && !absl::StartsWith(path, "/dev/"))) {
    return inode != 0 ? MappingKind::kFile : MappingKind::kOther;
  }
  return MappingKind::kOther;
}

void MappingTable::Insert(Mapping mapping) {
  if (mapping.start >= mapping.end) return;
  ++generation_;
  // [first, last) are the mappings that the new one overlaps.
  auto first = std::lower_bound(mappings_.begin(), mappings_.end(), mapping.start,
                                [](const Mapping& m, uint64_t address) { return m.end <= address; });
  auto last = std::lower_bound(first, mappings_.end(), mapping.end,
                               [](const Mapping& m, uint64_t address) { return m.start < address; });
  std::vector<Mapping> replacement;
  if (first != last) {
    if (first->start < mapping.start) {
      Mapping head = *first;
      head.end = mapping.start;
      replacement.push_back(std::move(head));
    }
    replacement.push_back(mapping);
    const Mapping& back = *(last - 1);
    if (back.end > mapping.end) {
      Mapping tail = back;
      tail.file_offset += mapping.end - back.start;
      tail.start = mapping.end;
      replacement.push_back(std::move(tail));
    }
  } else {
    replacement.push_back(std::move(mapping));
  }
  const auto at = mappings_.erase(first, last);
  mappings_.insert(at, std::make_move_iterator(replacement.begin()), std::make_move_iterator(replacement.end()));
}

void MappingTable::Clear() {
  mappings_.clear();
  ++generation_;
}

const Mapping* MappingTable::Find(uint64_t address) const {
  const auto found = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                      [](uint64_t a, const Mapping& m) { return a < m.end; });
  if (found == mappings_.end() || found->start > address) return nullptr;
  return &*found;
}

}  // namespace clrsampler
