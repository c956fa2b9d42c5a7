#include "capture/transient_code_map.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status Failed(int error, uint32_t tgid) {
  if (error == E2BIG || error == ENOMEM) {
    return absl::ResourceExhaustedError(
        "the processes of this host have more dynamic code than the sampler has room for");
  }
  return ErrnoError(error, absl::StrCat("telling the sampler of dynamic code of process ", tgid));
}

}  // namespace

TransientPages PagesOf(std::span<const wire_transient_heap> heaps, size_t limit, size_t& left_out) {
  constexpr uint64_t kEndOfUserMemory = 1ull << 48;
  TransientPages pages;
  left_out = 0;
  for (const wire_transient_heap& heap : heaps) {
    if (heap.begin >= heap.end || heap.end > kEndOfUserMemory) {
      ++left_out;
      continue;
    }
    const uint64_t last = (heap.end - 1) >> WIRE_CODE_PAGE_SHIFT;
    bool whole = true;
    for (uint64_t page = heap.begin >> WIRE_CODE_PAGE_SHIFT; page <= last; ++page) {
      if (pages.size() >= limit) {
        whole = false;
        break;
      }
      whole &= pages.emplace(static_cast<uint32_t>(page), heap).second;
    }
    if (!whole) ++left_out;
  }
  return pages;
}

absl::Status TransientCodeMap::Set(uint32_t tgid, const wire_transient_code& code,
                                   std::span<const wire_transient_heap> heaps) {
  size_t left_out = 0;
  // Heaps first: the other entry makes the sampler look for them.
  const absl::Status told = SetPages(tgid, PagesOf(heaps, kMaxPages, left_out));
  wire_transient_code known{}, next = code;
  if (bpf_map_lookup_elem(code_map_, &tgid, &known) == 0) {
    next.woken_ns = known.woken_ns;
    next.sampled_ns = known.sampled_ns;
    next.compiled_page = known.compiled_page;
  }
  if (bpf_map_update_elem(code_map_, &tgid, &next, BPF_ANY) != 0) return Failed(errno, tgid);
  if (!told.ok() || left_out == 0) return told;
  return absl::ResourceExhaustedError(absl::StrCat("process ", tgid, " keeps dynamic code in ", heaps.size(),
                                                   " places, of which the sampler can't watch ", left_out));
}

absl::Status TransientCodeMap::SetPages(uint32_t tgid, const TransientPages& pages) {
  TransientPages& told = told_[tgid];
  for (auto at = told.begin(); at != told.end();) {
    const wire_transient_page key{.tgid = tgid, .page = at->first};
    if (pages.contains(at->first)) {
      ++at;
      continue;
    }
    bpf_map_delete_elem(heaps_map_, &key);
    at = told.erase(at);
  }
  for (const auto& [page, heap] : pages) {
    const auto known = told.find(page);
    if (known != told.end() && std::memcmp(&known->second, &heap, sizeof heap) == 0) continue;
    const wire_transient_page key{.tgid = tgid, .page = page};
    if (bpf_map_update_elem(heaps_map_, &key, &heap, BPF_ANY) != 0) return Failed(errno, tgid);
    told[page] = heap;
  }
  return absl::OkStatus();
}

void TransientCodeMap::Remove(uint32_t tgid) {
  bpf_map_delete_elem(code_map_, &tgid);
  const auto told = told_.find(tgid);
  if (told == told_.end()) return;
  for (const auto& [page, heap] : told->second) {
    const wire_transient_page key{.tgid = tgid, .page = page};
    bpf_map_delete_elem(heaps_map_, &key);
  }
  told_.erase(told);
}

}  // namespace clrsampler
