#include "store/roll_up.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/byte_reader.h"
#include "status/status.h"
#include "store/entry.h"
#include "store/history_schema.h"

namespace clrsampler {
namespace {

// The numbers are checked against the bounds of the segment where they are used.
constexpr const DictionarySizes& kAnySizes = kMaxDictionarySizes;

class Merging {
 public:
  Merging(std::span<const int64_t> entries, const PartStatements& parts, BlobPacker& packer)
      : entries_(entries), parts_(parts), packer_(packer) {}

  absl::StatusOr<uint64_t> Run() {
    EntryAccount account;
    for (const int64_t entry : entries_) {
      ASSIGN_OR_RETURN(const std::optional<std::string> bytes, Read(PartKey(entry, PartKind::kAccount)));
      if (!bytes) continue;
      const absl::StatusOr<EntryAccount> later = DecodeAccount(AsBytes(*bytes), kAnySizes);
      if (later.ok()) MergeAccount(account, *later);
      damaged_ += later.ok() ? 0 : 1;
    }

    std::vector<ProcessTally> tallies;
    RETURN_IF_ERROR(ReadAll(PartKind::kTallies, DecodeTallies, tallies));
    MergeTallies(tallies);
    RETURN_IF_ERROR(Write(PartKey(entries_[0], PartKind::kTallies), EncodeTallies(tallies)));

    std::vector<EntryPause> pauses;
    RETURN_IF_ERROR(ReadAll(PartKind::kPauses, DecodePauses, pauses));
    account.pauses_left_out += MergePauses(pauses);
    RETURN_IF_ERROR(Write(PartKey(entries_[0], PartKind::kPauses), EncodePauses(pauses)));

    std::vector<EntryMethod> methods;
    RETURN_IF_ERROR(ReadAll(PartKind::kMethods, DecodeMethods, methods));
    account.methods_left_out += MergeMethods(methods);
    RETURN_IF_ERROR(Write(PartKey(entries_[0], PartKind::kMethods), EncodeMethods(methods)));

    RETURN_IF_ERROR(Write(PartKey(entries_[0], PartKind::kAccount), EncodeAccount(account)));
    for (const PartKind kind : kStackParts) RETURN_IF_ERROR(MergeStacks(kind));
    for (const int64_t entry : entries_.subspan(1)) {
      RETURN_IF_ERROR(parts_.erase.Do(PartKey(entry, PartKind{0}), PartKeyAfter(entry)));
    }
    return damaged_;
  }

 private:
  // nullopt: there is none, or a damaged one, which is counted.
  absl::StatusOr<std::optional<std::string>> Read(int64_t key) {
    SqliteRows rows = parts_.read.Run(key);
    ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return std::nullopt;
    absl::StatusOr<std::string> bytes = UnpackBlob(rows.Blob(0));
    if (bytes.ok()) return std::optional(*std::move(bytes));
    ++damaged_;
    return std::nullopt;
  }

  template <typename T>
  absl::Status ReadAll(PartKind kind,
                       absl::Status (*decode)(std::span<const std::byte>, const DictionarySizes&, std::vector<T>&),
                       std::vector<T>& values) {
    for (const int64_t entry : entries_) {
      ASSIGN_OR_RETURN(const std::optional<std::string> bytes, Read(PartKey(entry, kind)));
      if (bytes && !decode(AsBytes(*bytes), kAnySizes, values).ok()) ++damaged_;
    }
    return absl::OkStatus();
  }

  absl::Status MergeStacks(PartKind kind) {
    std::map<uint32_t, std::vector<int64_t>> keys_of_processes;
    for (const int64_t entry : entries_) {
      SqliteRows rows = parts_.keys.Run(PartKey(entry, kind), PartKeyAfter(entry, kind));
      while (true) {
        ASSIGN_OR_RETURN(const bool row, rows.Next());
        if (!row) break;
        keys_of_processes[PartProcess(rows.Number(0))].push_back(rows.Number(0));
      }
    }
    for (const auto& [process, keys] : keys_of_processes) {
      const int64_t target = PartKey(entries_[0], kind, process);
      if (keys.size() == 1 && keys[0] == target) continue;
      std::vector<StackRow> stacks;
      for (const int64_t key : keys) {
        ASSIGN_OR_RETURN(const std::optional<std::string> bytes, Read(key));
        if (bytes && !DecodeRows(AsBytes(*bytes), kAnySizes, stacks).ok()) ++damaged_;
      }
      MergeRows(stacks);
      if (!stacks.empty()) RETURN_IF_ERROR(Write(target, EncodeRows(stacks)));
    }
    return absl::OkStatus();
  }

  absl::Status Write(int64_t key, const std::string& bytes) {
    if (bytes.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string blob, packer_.Pack(AsBytes(bytes)));
    return parts_.replace.Do(key, AsBytes(blob));
  }

  std::span<const int64_t> entries_;
  const PartStatements& parts_;
  BlobPacker& packer_;
  uint64_t damaged_ = 0;
};

}  // namespace

absl::StatusOr<uint64_t> MergeEntries(std::span<const int64_t> entries, const PartStatements& parts,
                                      BlobPacker& packer) {
  return Merging(entries, parts, packer).Run();
}

}  // namespace clrsampler
