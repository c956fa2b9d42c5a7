#include "process/mappings.h"

#include <algorithm>
#include <iterator>
#include <optional>
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
  Content& content = Own();
  Mappings& mappings = content.mappings;
  auto at = mappings.upper_bound(mapping.start);
  if (at != mappings.begin()) {
    if (const auto before = std::prev(at); before->end > mapping.start) at = before;
  }
  // The rest below and above of the mappings that the new one overlaps.
  std::optional<Mapping> head, tail;
  while (at != mappings.end() && at->start < mapping.end) {
    if (at->start < mapping.start) {
      head = *at;
      head->end = mapping.start;
    }
    if (at->end > mapping.end) {
      tail = *at;
      tail->file_offset += mapping.end - at->start;
      tail->start = mapping.end;
    }
    at = Remove(content, at);
  }
  if (head.has_value()) Add(content, *std::move(head));
  if (tail.has_value()) Add(content, *std::move(tail));
  Add(content, std::move(mapping));
}

MappingTable::Content& MappingTable::Own() {
  if (content_.use_count() > 1) content_ = std::make_shared<Content>(*content_);
  return *content_;
}

void MappingTable::Add(Content& content, Mapping mapping) {
  jit_memory_ += mapping.kind == MappingKind::kJitMemory;
  std::deque<Arrival>& arrived = content.arrived;
  arrived.push_back({generation_, mapping.start});
  content.mappings.insert(std::move(mapping));
  while (arrived.size() > std::max(kMinArrivals, content.mappings.size())) {
    known_since_ = arrived.front().generation;
    arrived.pop_front();
  }
}

MappingTable::Mappings::iterator MappingTable::Remove(Content& content, Mappings::iterator at) {
  jit_memory_ -= at->kind == MappingKind::kJitMemory;
  return content.mappings.erase(at);
}

void MappingTable::Clear() {
  content_ = std::make_shared<Content>();
  replaced_.clear();
  jit_memory_ = 0;
  known_since_ = ++generation_;
}

const Mapping* MappingTable::Find(uint64_t address) const {
  LastFound::Entry& last = last_found_.For(address);
  if (last.generation == generation_ && last.mapping->start <= address && address < last.mapping->end) {
    return last.mapping;
  }
  const auto above = all().upper_bound(address);
  if (above == all().begin()) return nullptr;
  const Mapping& found = *std::prev(above);
  if (address >= found.end) return nullptr;
  last = {generation_, &found};
  return &found;
}

bool MappingTable::NoteReplaced(uint64_t start, uint64_t end, MonotonicTime until) {
  if (replaced_.size() >= kMaxReplaced) return false;
  replaced_.push_back({start, end, until});
  ++generation_;
  return true;
}

MonotonicTime MappingTable::KnownSince(uint64_t address) const {
  MonotonicTime since = MonotonicTime::Min();
  for (const ReplacedRange& range : replaced_) {
    if (address >= range.start && address < range.end) since = std::max(since, range.until);
  }
  return since;
}

void MappingTable::ForgetReplacedBefore(MonotonicTime time) {
  std::erase_if(replaced_, [time](const ReplacedRange& range) { return range.until <= time; });
}

}  // namespace clrsampler
