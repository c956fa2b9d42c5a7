// An entry: what the store keeps of one window, or of the windows of one minute or hour together, in parts that are
// read alone. Numbers of strings, nodes, processes and threads are those of the entry's segment
// (segment_dictionary.h).
//
// Pure. Encode gives the bytes of a part; Decode reads bytes of a file that may be damaged: what it gives is in the
// bounds of `sizes`, else DATA_LOSS. Merge makes one part of several: sums are exact, and nothing depends on the order
// but the order of pauses and notices.
#ifndef CLRSAMPLER_STORE_ENTRY_H_
#define CLRSAMPLER_STORE_ENTRY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"
#include "profile/window.h"
#include "store/segment_dictionary.h"

namespace clrsampler {

enum class EntryLevel : uint8_t { kWindow, kMinute, kHour };
inline constexpr int kEntryLevelCount = 3;

// Numbers are those of the file.
enum class PartKind : uint8_t {
  kAccount = 0,  // EntryAccount
  kTallies = 1,  // of ProcessTally, by process
  kPauses = 2,   // of EntryPause
  kMethods = 3,  // of EntryMethod
  kCpu = 4,      // this and the following: of StackRow, a part for each process
  kJit = 5,
  kSuspend = 6,
  kAllocations = 7,
  kWaits = 8,
};
inline constexpr int kPartKindCount = 9;
// Those with stacks, and the view that each is read for.
inline constexpr std::array kStackParts = {PartKind::kCpu, PartKind::kJit, PartKind::kSuspend, PartKind::kAllocations,
                                           PartKind::kWaits};
PartKind PartOf(ProfileView view);

// Weight of the samples of a thread with one stack, in nanoseconds, of allocations in bytes. Times inside of a window
// are not kept.
struct StackRow {
  uint32_t thread = 0;
  NodeIndex node = kRootNode;
  SampleState state = SampleState::kNone;
  uint64_t weight = 0;

  friend bool operator==(const StackRow&, const StackRow&) = default;
};

// A process in the time of an entry.
struct ProcessTally : ProcessCounts {
  uint32_t process = 0;
  std::map<StringIndex, uint64_t> pauses_by_kind;  // of those that the window lists

  uint64_t total_cpu_ns() const;
};

// WindowPause with texts as numbers.
struct EntryPause {
  uint32_t process = 0;
  uint64_t requested_unix_ns = 0;
  uint64_t suspend_ns = 0, pause_ns = 0;
  StringIndex kind = 0, reason = 0, gc_reason = 0;
  std::optional<uint32_t> generation;
  std::optional<uint64_t> gc_index;
  bool induced = false;
  uint32_t tid = 0;
  StringIndex thread_name = 0;
  struct Blame {
    StringIndex method = 0;
    uint32_t tid = 0;
    uint64_t delay_ns = 0;
    uint32_t samples = 0;
  };
  std::vector<Blame> culprits;
};

// WindowMethod with texts as numbers.
struct EntryMethod {
  uint32_t process = 0;
  StringIndex method = 0, tier = 0;
  uint64_t count = 0, total_ns = 0, longest_ns = 0, bytes = 0;
};

struct EntryAccount {
  uint64_t covered_ns = 0;
  uint64_t samples_expected = 0, samples_taken = 0, samples_written = 0;
  FrameCounts managed, native, kernel;
  uint64_t stacks_complete = 0, stacks_truncated = 0, stacks_broken = 0;
  uint64_t self_cpu_ns = 0;
  uint64_t peak_rss_bytes = 0;
  uint64_t bpf_map_bytes = 0;                          // the newest
  uint64_t pauses_left_out = 0, methods_left_out = 0;  // that are in no list any more
  std::map<StringIndex, uint64_t> lost;                // by reason
  std::map<StringIndex, uint64_t> notice_counts;
  std::vector<StringIndex> notices;  // sentences, oldest first, at most kMaxEntryNotices
  struct Rate {
    uint64_t time_unix_ns = 0;
    uint32_t hz = 0;
  };
  std::vector<Rate> rates;  // in order, none the same as the one before, at most kMaxEntryRates
};

// The bound of minutes and hours; the shortest are left out, and still count in tallies and account.
inline constexpr size_t kMaxEntryPauses = 2000;
inline constexpr size_t kMaxEntryMethods = 5000;
inline constexpr size_t kMaxEntryNotices = 50;
inline constexpr size_t kMaxEntryRates = 1000;

// Sorts by thread, state and node, and adds up equal ones. A sum that does not fit stays at the largest number.
void MergeRows(std::vector<StackRow>& rows);
// Rows as MergeRows leaves them, weights at least 1.
std::string EncodeRows(std::span<const StackRow> rows);
// Adds to `rows`.
absl::Status DecodeRows(std::span<const std::byte> bytes, const DictionarySizes& sizes, std::vector<StackRow>& rows);

void MergeTallies(std::vector<ProcessTally>& tallies);  // sorts by process
std::string EncodeTallies(std::span<const ProcessTally> tallies);
absl::Status DecodeTallies(std::span<const std::byte> bytes, const DictionarySizes& sizes,
                           std::vector<ProcessTally>& tallies);

// In the order of their requests, the longest `limit`; says how many are left out.
uint64_t MergePauses(std::vector<EntryPause>& pauses, size_t limit = kMaxEntryPauses);
std::string EncodePauses(std::span<const EntryPause> pauses);
absl::Status DecodePauses(std::span<const std::byte> bytes, const DictionarySizes& sizes,
                          std::vector<EntryPause>& pauses);

// One for each process, method and tier, those with most time first, at most `limit`; says how many are left out.
uint64_t MergeMethods(std::vector<EntryMethod>& methods, size_t limit = kMaxEntryMethods);
std::string EncodeMethods(std::span<const EntryMethod> methods);
absl::Status DecodeMethods(std::span<const std::byte> bytes, const DictionarySizes& sizes,
                           std::vector<EntryMethod>& methods);

// `later` follows `account`.
void MergeAccount(EntryAccount& account, const EntryAccount& later);
std::string EncodeAccount(const EntryAccount& account);
absl::StatusOr<EntryAccount> DecodeAccount(std::span<const std::byte> bytes, const DictionarySizes& sizes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_ENTRY_H_
