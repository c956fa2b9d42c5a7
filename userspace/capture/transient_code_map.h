// Tells the BPF programs where processes keep transient code: code that its runtime may free and replace at any time.
//
// The kernel finds a heap by the page of an address (map transient_heaps of bpf/shared_maps.bpf.h), so how many heaps a
// process has costs a sample nothing. Not thread-safe.
#ifndef CLRSAMPLER_CAPTURE_TRANSIENT_CODE_MAP_H_
#define CLRSAMPLER_CAPTURE_TRANSIENT_CODE_MAP_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "clrsampler/wire.h"

namespace clrsampler {

// Page number (wire_transient_page) -> the heap that lies there.
using TransientPages = absl::btree_map<uint32_t, wire_transient_heap>;

// The pages of `heaps`, at most `limit`; `left_out` counts heaps that are not whole in it: those past the limit, and
// those that share a page with one before them. A heap may claim anything.
TransientPages PagesOf(std::span<const wire_transient_heap> heaps, size_t limit, size_t& left_out);

class TransientCodeMap {
 public:
  // Most pages of one process: 256 MB of code, so that no process can take what all of them share.
  static constexpr size_t kMaxPages = 4096;

  // Neither is owned; both must be open as long as this is used.
  TransientCodeMap(int code_map, int heaps_map) : code_map_(code_map), heaps_map_(heaps_map) {}

  // Replaces what was said of the process. RESOURCE_EXHAUSTED: only a part of it is watched from now on.
  absl::Status Set(uint32_t tgid, const wire_transient_code& code, std::span<const wire_transient_heap> heaps);
  void Remove(uint32_t tgid);

 private:
  absl::Status SetPages(uint32_t tgid, const TransientPages& pages);

  int code_map_;
  int heaps_map_;
  absl::flat_hash_map<uint32_t, TransientPages> told_;  // what the kernel has, by tgid
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_TRANSIENT_CODE_MAP_H_
