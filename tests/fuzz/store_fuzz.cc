// Any bytes as blobs of a store. The first one says which: a part of an entry, a packed blob, or a dictionary (its
// length in the next two bytes) with rows behind it, which become a profile. Decoded values are in bounds, and come
// back when they are merged, encoded and decoded again.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/byte_reader.h"
#include "store/blob.h"
#include "store/entry.h"
#include "store/profile_collector.h"
#include "store/segment_dictionary.h"

namespace {

using clrsampler::AsBytes;
using clrsampler::DictionarySizes;

constexpr DictionarySizes kSizes = {.strings = 40, .frames = 40, .nodes = 300, .processes = 20, .threads = 50};

void Require(bool condition) {
  if (!condition) __builtin_trap();
}

// The result of `merge`, as `encode` writes it, has to come back with the same bytes.
template <typename T, typename Merge>
bool ComesBack(std::span<const std::byte> bytes,
               absl::Status (*decode)(std::span<const std::byte>, const DictionarySizes&, std::vector<T>&),
               std::string (*encode)(std::span<const T>), Merge merge) {
  std::vector<T> values, again;
  const absl::Status status = decode(bytes, kSizes, values);
  if (!status.ok()) {
    Require(values.empty() && !status.message().empty());
    return false;
  }
  merge(values);
  const std::string encoded = encode(values);
  Require(decode(AsBytes(encoded), kSizes, again).ok());
  merge(again);
  Require(again.size() == values.size() && encode(again) == encoded);
  return true;
}

void Rows(std::span<const std::byte> bytes) {
  std::vector<clrsampler::StackRow> rows;
  if (clrsampler::DecodeRows(bytes, kSizes, rows).ok()) {
    for (const clrsampler::StackRow& row : rows) {
      Require(row.thread < kSizes.threads && row.node < kSizes.nodes && row.weight > 0);
      Require(static_cast<int>(row.state) < clrsampler::kSampleStateCount);
    }
  }
  ComesBack<clrsampler::StackRow>(bytes, clrsampler::DecodeRows, clrsampler::EncodeRows, clrsampler::MergeRows);
}

void Account(std::span<const std::byte> bytes) {
  absl::StatusOr<clrsampler::EntryAccount> account = clrsampler::DecodeAccount(bytes, kSizes);
  if (!account.ok()) return;
  clrsampler::EntryAccount sum;
  MergeAccount(sum, *account);
  const std::string encoded = EncodeAccount(sum);
  const absl::StatusOr<clrsampler::EntryAccount> again = clrsampler::DecodeAccount(AsBytes(encoded), kSizes);
  Require(again.ok() && EncodeAccount(*again) == encoded);
}

void Dictionary(std::span<const std::byte> bytes) {
  const auto length = clrsampler::LoadAt<uint16_t>(bytes, 0);
  if (!length || *length > bytes.size() - 2) return;
  clrsampler::SegmentDictionary dictionary;
  if (!dictionary.Extend(bytes.subspan(2, *length)).ok()) {
    Require(dictionary.sizes() == DictionarySizes());
    return;
  }
  std::vector<clrsampler::StackRow> rows;
  if (!clrsampler::DecodeRows(bytes.subspan(2 + size_t{*length}), dictionary.sizes(), rows).ok()) return;
  clrsampler::ProfileCollector collector({.rows = 100, .nodes = 1000});
  collector.BeginSegment(dictionary);
  for (const clrsampler::StackRow& row : rows) {
    if (!collector.Add(dictionary, row).ok()) break;
  }
  const absl::StatusOr<clrsampler::ProfileModel> model = std::move(collector).Build();
  if (!model.ok()) return;  // its weights are too large together
  uint64_t total = 0;
  for (size_t i = 0; i < model->samples.size(); ++i) total += model->samples.weight_of(i);
  Require(total == model->total_weight);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'a':
      Account(bytes);
      break;
    case 'b':
      (void)clrsampler::UnpackBlob(bytes);
      break;
    case 'd':
      Dictionary(bytes);
      break;
    case 'm':
      ComesBack<clrsampler::EntryMethod>(bytes, clrsampler::DecodeMethods, clrsampler::EncodeMethods,
                                         [](auto& methods) { clrsampler::MergeMethods(methods); });
      break;
    case 'p':
      ComesBack<clrsampler::EntryPause>(bytes, clrsampler::DecodePauses, clrsampler::EncodePauses,
                                        [](auto& pauses) { clrsampler::MergePauses(pauses); });
      break;
    case 't':
      ComesBack<clrsampler::ProcessTally>(bytes, clrsampler::DecodeTallies, clrsampler::EncodeTallies,
                                          clrsampler::MergeTallies);
      break;
    default:
      Rows(bytes);
  }
  return 0;
}
