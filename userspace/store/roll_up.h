// Makes one entry of several of the same segment: in place, process by process, so that no more is in memory than the
// rows of one process.
#ifndef CLRSAMPLER_STORE_ROLL_UP_H_
#define CLRSAMPLER_STORE_ROLL_UP_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "store/blob.h"
#include "store/sqlite.h"

namespace clrsampler {

struct PartStatements {
  SqliteStatement& keys;     // in [first, end), in order
  SqliteStatement& read;     // by key
  SqliteStatement& replace;  // key, blob
  SqliteStatement& erase;    // in [first, end)
};

// The first of `entries` gets what all of them say, the others' parts are erased. Within a transaction. Parts that
// are damaged are left out; says how many.
absl::StatusOr<uint64_t> MergeEntries(std::span<const int64_t> entries, const PartStatements& parts,
                                      BlobPacker& packer);

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_ROLL_UP_H_
