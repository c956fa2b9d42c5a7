#include "store/roll_up.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/byte_reader.h"
#include "status/status.h"
#include "store/history_schema.h"
#include "store/record.h"

namespace clrsampler {
namespace {

// Whether numbers are in the bounds of the chapter is asked where they are used.
constexpr const DictionarySizes& kAnySizes = kMaxDictionarySizes;

class Merging {
 public:
  Merging(std::span<const int64_t> records, const PartStatements& parts, BlobPacker& packer)
      : records_(records), parts_(parts), packer_(packer) {}

  absl::StatusOr<uint64_t> Run() {
    RecordAccount account;
    for (const int64_t record : records_) {
      const absl::StatusOr<std::optional<std::string>> bytes = Read(PartKey(record, PartKind::kAccount));
      if (!bytes.ok()) return bytes.status();
      if (!*bytes) continue;
      const absl::StatusOr<RecordAccount> later = DecodeAccount(AsBytes(**bytes), kAnySizes);
      if (later.ok()) MergeAccount(account, *later);
      damaged_ += later.ok() ? 0 : 1;
    }

    std::vector<ProcessTally> tallies;
    RETURN_IF_ERROR(ReadAll(PartKind::kTallies, DecodeTallies, tallies));
    MergeTallies(tallies);
    RETURN_IF_ERROR(Write(PartKey(records_[0], PartKind::kTallies), EncodeTallies(tallies)));

    std::vector<RecordPause> pauses;
    RETURN_IF_ERROR(ReadAll(PartKind::kPauses, DecodePauses, pauses));
    account.pauses_left_out += MergePauses(pauses);
    RETURN_IF_ERROR(Write(PartKey(records_[0], PartKind::kPauses), EncodePauses(pauses)));

    std::vector<RecordMethod> methods;
    RETURN_IF_ERROR(ReadAll(PartKind::kMethods, DecodeMethods, methods));
    account.methods_left_out += MergeMethods(methods);
    RETURN_IF_ERROR(Write(PartKey(records_[0], PartKind::kMethods), EncodeMethods(methods)));

    RETURN_IF_ERROR(Write(PartKey(records_[0], PartKind::kAccount), EncodeAccount(account)));
    for (const PartKind kind : kStackParts) RETURN_IF_ERROR(MergeStacks(kind));
    for (const int64_t record : records_.subspan(1)) {
      RETURN_IF_ERROR(parts_.erase.Do(PartKey(record, PartKind{0}), PartKeyAfter(record)));
    }
    return damaged_;
  }

 private:
  // nullopt: there is none, or a damaged one, which is counted.
  absl::StatusOr<std::optional<std::string>> Read(int64_t key) {
    SqliteRows rows = parts_.read.Run(key);
    const absl::StatusOr<bool> row = rows.Next();
    if (!row.ok()) return row.status();
    if (!*row) return std::nullopt;
    absl::StatusOr<std::string> bytes = UnpackBlob(rows.Blob(0));
    if (bytes.ok()) return std::optional(*std::move(bytes));
    ++damaged_;
    return std::nullopt;
  }

  template <typename T>
  absl::Status ReadAll(PartKind kind,
                       absl::Status (*decode)(std::span<const std::byte>, const DictionarySizes&, std::vector<T>&),
                       std::vector<T>& values) {
    for (const int64_t record : records_) {
      const absl::StatusOr<std::optional<std::string>> bytes = Read(PartKey(record, kind));
      if (!bytes.ok()) return bytes.status();
      if (*bytes && !decode(AsBytes(**bytes), kAnySizes, values).ok()) ++damaged_;
    }
    return absl::OkStatus();
  }

  absl::Status MergeStacks(PartKind kind) {
    std::map<uint32_t, std::vector<int64_t>> keys_of_processes;
    for (const int64_t record : records_) {
      SqliteRows rows = parts_.keys.Run(PartKey(record, kind), PartKeyAfter(record, kind));
      while (true) {
        const absl::StatusOr<bool> row = rows.Next();
        if (!row.ok()) return row.status();
        if (!*row) break;
        keys_of_processes[PartProcess(rows.Number(0))].push_back(rows.Number(0));
      }
    }
    for (const auto& [process, keys] : keys_of_processes) {
      const int64_t target = PartKey(records_[0], kind, process);
      if (keys.size() == 1 && keys[0] == target) continue;
      std::vector<StackRow> stacks;
      for (const int64_t key : keys) {
        const absl::StatusOr<std::optional<std::string>> bytes = Read(key);
        if (!bytes.ok()) return bytes.status();
        if (*bytes && !DecodeRows(AsBytes(**bytes), kAnySizes, stacks).ok()) ++damaged_;
      }
      MergeRows(stacks);
      if (!stacks.empty()) RETURN_IF_ERROR(Write(target, EncodeRows(stacks)));
    }
    return absl::OkStatus();
  }

  absl::Status Write(int64_t key, const std::string& bytes) {
    if (bytes.empty()) return absl::OkStatus();
    const absl::StatusOr<std::string> blob = packer_.Pack(AsBytes(bytes));
    if (!blob.ok()) return blob.status();
    return parts_.replace.Do(key, AsBytes(*blob));
  }

  std::span<const int64_t> records_;
  const PartStatements& parts_;
  BlobPacker& packer_;
  uint64_t damaged_ = 0;
};

}  // namespace

absl::StatusOr<uint64_t> MergeRecords(std::span<const int64_t> records, const PartStatements& parts,
                                      BlobPacker& packer) {
  return Merging(records, parts, packer).Run();
}

}  // namespace clrsampler
