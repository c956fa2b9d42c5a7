#include "capture/stack_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "os/file_io.h"

namespace clrsampler {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kMaxGapWords = WIRE_GAP_MASK;
constexpr uint64_t kMaxAddress = uint64_t{1} << 56;  // user space ends before; beyond, file positions are negative
// Documentation/admin-guide/mm/pagemap.rst
constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62;

// From sp upwards, as far as memory goes.
std::vector<uint64_t> ReadStack(ReadMemoryFunction read, uint64_t sp, uint64_t max_bytes) {
  std::vector<uint64_t> words;
  uint64_t at = sp;
  while (at - sp < max_bytes) {
    const uint64_t bytes = std::min(kPage - at % kPage, max_bytes - (at - sp)) / sizeof(uint64_t) * sizeof(uint64_t);
    if (bytes == 0) break;
    const size_t before = words.size();
    words.resize(before + bytes / sizeof(uint64_t));
    if (!read(at, std::as_writable_bytes(std::span(words).subspan(before)))) {
      words.resize(before);
      break;
    }
    at += bytes;
  }
  return words;
}

// The frame-pointer chain through the stack, with all words between its frames. This is what the sampler sends, uncut.
void AppendChain(uint64_t sp, uint64_t fp, std::span<const uint64_t> stack, wire_cpu_sample& sample,
                 std::vector<uint64_t>& out) {
  uint64_t last = 0;  // index of the first word that is not taken yet
  sample.stop = WIRE_STOP_BAD_FP;
  for (uint64_t frame = fp;;) {
    if (frame == 0) {
      sample.stop = WIRE_STOP_END;
      break;
    }
    if (frame < sp || frame % sizeof(uint64_t) != 0) break;
    const uint64_t index = (frame - sp) / sizeof(uint64_t);
    if (index < last || stack.size() < 2 || index > stack.size() - 2) break;
    if (sample.user_frames == UINT16_MAX) {
      sample.stop = WIRE_STOP_MAX_FRAMES;
      break;
    }
    if (index - last > kMaxGapWords) {
      // This is like the sampler: the first and the last words of a long gap.
      constexpr uint64_t kHalf = kMaxGapWords / 2;
      out.push_back((sp + (last + kHalf - 2) * sizeof(uint64_t)) | (kHalf - 2) << WIRE_GAP_SHIFT |
                    WIRE_FRAME_WORDS_ONLY);
      out.insert(out.end(), stack.begin() + static_cast<ptrdiff_t>(last),
                 stack.begin() + static_cast<ptrdiff_t>(last + kHalf));
      ++sample.user_frames;
      last = index - kHalf;
    }
    const uint64_t gap = index - last;
    out.push_back(frame | gap << WIRE_GAP_SHIFT);
    out.insert(out.end(), stack.begin() + static_cast<ptrdiff_t>(last),
               stack.begin() + static_cast<ptrdiff_t>(last + gap));
    out.push_back(stack[index]);
    out.push_back(stack[index + 1]);
    ++sample.user_frames;
    last = index + 2;
    frame = stack[index];
    if (stack[index + 1] == 0) {
      sample.stop = WIRE_STOP_END;
      break;
    }
  }
  // A chain that ends may still be none: code without frame pointers may have a zero in rbp, above a long stack.
  const uint64_t tail = std::min<uint64_t>(stack.size() - last, kMaxGapWords);
  out.push_back(tail << WIRE_GAP_SHIFT);
  out.insert(out.end(), stack.begin() + static_cast<ptrdiff_t>(last),
             stack.begin() + static_cast<ptrdiff_t>(last + tail));
}

}  // namespace

StackMemory::StackMemory(uint32_t tid)
    : memory_(open(absl::StrCat("/proc/", tid, "/mem").c_str(), O_RDONLY | O_CLOEXEC)),
      pages_(open(absl::StrCat("/proc/", tid, "/pagemap").c_str(), O_RDONLY | O_CLOEXEC)) {}

bool StackMemory::Read(uint64_t address, std::span<std::byte> into) const {
  if (address > kMaxAddress) return false;
  if (pages_.valid()) {
    static const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    std::array<uint64_t, kMaxHoleBytes / kPage> entries;
    const auto wanted = std::as_writable_bytes(std::span(entries).first(kMaxHoleBytes / page_bytes));
    const absl::StatusOr<size_t> got = ReadAt(pages_.get(), address / page_bytes * sizeof(uint64_t), wanted);
    const std::span<const uint64_t> known = std::span(entries).first(got.ok() ? *got / sizeof(uint64_t) : 0);
    const auto is_there = [](uint64_t entry) { return (entry & (kPresent | kSwapped)) != 0; };
    if (std::ranges::none_of(known, is_there)) return false;
    if (!is_there(known.front())) {
      std::ranges::fill(into, std::byte{0});
      return true;
    }
  }
  const absl::StatusOr<size_t> got = ReadAt(memory_.get(), address, into);
  return got.ok() && *got == into.size();
}

std::vector<uint64_t> RecordWithStack(wire_cpu_sample head, std::span<const uint64_t> kernel, int memory,
                                      uint64_t max_stack_bytes) {
  const auto read = [&](uint64_t address, std::span<std::byte> into) {
    const absl::StatusOr<size_t> got = ReadAt(memory, address, into);
    return got.ok() && *got == into.size();
  };
  return RecordWithStack(head, kernel, read, max_stack_bytes);
}

std::vector<uint64_t> RecordWithStack(wire_cpu_sample head, std::span<const uint64_t> kernel, ReadMemoryFunction read,
                                      uint64_t max_stack_bytes) {
  std::vector<uint64_t> words(kernel.begin(), kernel.end());
  AppendChain(head.sp, head.fp, ReadStack(read, head.sp, max_stack_bytes), head, words);
  head.kernel_frames = static_cast<uint16_t>(kernel.size());
  head.user_words = static_cast<uint32_t>(words.size() - kernel.size());
  head.header.size = static_cast<uint32_t>(sizeof head + words.size() * sizeof(uint64_t));
  std::vector<uint64_t> record(sizeof head / sizeof(uint64_t));
  std::memcpy(record.data(), &head, sizeof head);
  record.insert(record.end(), words.begin(), words.end());
  return record;
}

}  // namespace clrsampler
