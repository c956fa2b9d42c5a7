// The executable mappings of one process, as of the event that is being handled.
#ifndef CLRSAMPLER_PROCESS_MAPPINGS_H_
#define CLRSAMPLER_PROCESS_MAPPINGS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/strings/string_view.h"
#include "os/clock.h"

namespace clrsampler {

enum class MappingKind : uint8_t {
  kFile,       // an image: ELF, PE, or a single-file host that carries both
  kJitMemory,  // anonymous or memfd memory: JIT code, stubs, images that were copied. W^X heaps of .NET 7 and newer are
               // "/memfd:doublemapper (deleted)"
  kVdso,
  kOther,  // [uprobes], [vsyscall], device memory
};

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;          // exclusive
  uint64_t file_offset = 0;  // bytes; meaningless for kJitMemory
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  MappingKind kind = MappingKind::kOther;
  std::string path;  // as the kernel prints it, in the mount namespace of the target; may end in " (deleted)"
};

// Tells a mapping of a file from another one that begins at the same address.
struct MappingIdentity {
  uint64_t end = 0;  // which no mapping has
  uint64_t file_offset = 0;
  uint64_t inode = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;

  static MappingIdentity Of(const Mapping& mapping) {
    return {mapping.end, mapping.file_offset, mapping.inode, mapping.device_major, mapping.device_minor};
  }
  friend bool operator==(const MappingIdentity&, const MappingIdentity&) = default;
};

// Whether both show the same file, as far as /proc/PID/maps says.
inline bool ShowSameFile(const Mapping& a, const Mapping& b) {
  return a.inode == b.inode && a.device_major == b.device_major && a.device_minor == b.device_minor && a.path == b.path;
}

// The kind of a mapping with this name.
MappingKind ClassifyMapping(absl::string_view path, uint64_t inode);

struct MappingByStart {
  using is_transparent = void;
  bool operator()(const Mapping& a, const Mapping& b) const { return a.start < b.start; }
  bool operator()(const Mapping& a, uint64_t b) const { return a.start < b; }
  bool operator()(uint64_t a, const Mapping& b) const { return a < b.start; }
};

// Sorted and free of overlaps. Only on the main loop. A change costs O(log n): a process may have 65,530 mappings, and
// new ones come below the others. Copies share their content until one of them changes, as a process and its children
// do: a change of a copy costs O(n) once.
class MappingTable {
 public:
  using Mappings = absl::btree_set<Mapping, MappingByStart>;

  // A new mapping replaces what it overlaps, as mmap does; the rest of a cut mapping stays, with its offset moved on.
  void Insert(Mapping mapping);
  // All of it, unknown ranges too.
  void Clear();

  const Mapping* Find(uint64_t address) const;  // nullptr: no executable mapping that we know of
  const Mappings& all() const { return content_->mappings; }
  bool SharesContentWith(const MappingTable& other) const { return content_ == other.content_; }
  uint64_t generation() const { return generation_; }  // grows with every change
  bool has_jit_memory() const { return jit_memory_ > 0; }

  // Whether the mappings that have come since that generation are known one by one: it is not too long ago, and the
  // table was not cleared.
  bool KnowsSince(uint64_t generation) const { return generation >= known_since_; }
  // Visits each that has come since then, once or more; all of them where they are not known. A mapping that was
  // replaced meanwhile is not visited. Costs no more than the new ones do.
  template <typename Visitor>
  void ForEachSince(uint64_t generation, Visitor&& visit) const {
    if (!KnowsSince(generation)) {
      for (const Mapping& mapping : all()) visit(mapping);
      return;
    }
    const std::deque<Arrival>& arrived = content_->arrived;
    for (auto at = arrived.rbegin(); at != arrived.rend() && at->generation > generation; ++at) {
      if (const auto found = all().find(at->start); found != all().end()) visit(*found);
    }
  }

  // The content of [start, end) before `until` is not known: it was replaced then, before anybody looked. False, and
  // nothing is noted, when there are too many such ranges.
  bool NoteReplaced(uint64_t start, uint64_t end, MonotonicTime until);
  // From when on the mapping at this address is the one that was there; Min: as far back as anybody asks.
  MonotonicTime KnownSince(uint64_t address) const;
  // No question about a time before this will come.
  void ForgetReplacedBefore(MonotonicTime time);

 private:
  struct ReplacedRange {
    uint64_t start;
    uint64_t end;
    MonotonicTime until;
  };
  // They come from the time between a process's first sample and its first look at /proc, 100 ms: a start-up maps some
  // dozens. KnownSince walks them.
  static constexpr size_t kMaxReplaced = 1024;

  struct Arrival {
    uint64_t generation;
    uint64_t start;
  };
  struct Content {
    Mappings mappings;
    // The newest, at most as many as there are mappings: to visit them is no more work than to visit all.
    std::deque<Arrival> arrived;
  };
  Content& Own();  // for a change
  void Add(Content& content, Mapping mapping);
  Mappings::iterator Remove(Content& content, Mappings::iterator at);

  // Where addresses of a page were found last: a stack's addresses lie in few pages, and several ask for each. A copy
  // of the table begins without: these point into it.
  class LastFound {
   public:
    struct Entry {
      uint64_t generation = 0;  // for which it holds
      const Mapping* mapping = nullptr;
    };
    LastFound() = default;
    LastFound(const LastFound&) {}
    LastFound& operator=(const LastFound&) {
      entries_.clear();
      return *this;
    }
    Entry& For(uint64_t address) {
      if (entries_.empty()) entries_.resize(kEntries);  // most processes of a host are never asked about
      return entries_[address / kPageBytes % kEntries];
    }

   private:
    static constexpr size_t kEntries = 128;
    static constexpr uint64_t kPageBytes = 4096;
    std::vector<Entry> entries_;
  };

  static constexpr size_t kMinArrivals = 1024;

  std::shared_ptr<Content> content_ = std::make_shared<Content>();
  std::vector<ReplacedRange> replaced_;
  uint64_t known_since_ = 1;
  size_t jit_memory_ = 0;  // mappings of that kind
  uint64_t generation_ = 1;
  mutable LastFound last_found_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_MAPPINGS_H_
