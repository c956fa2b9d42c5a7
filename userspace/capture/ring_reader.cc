#include "capture/ring_reader.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kHeaderBytes = BPF_RINGBUF_HDR_SZ;  // u32 length with two flags, u32 page offset

constexpr size_t kReleaseBytes = 64 * 1024;

// The kernel writes these words with release stores.
template <typename Word>
Word LoadAcquire(const std::byte* address) {
  return __atomic_load_n(reinterpret_cast<const Word*>(address), __ATOMIC_ACQUIRE);
}

}  // namespace

const std::span<const std::byte>* RingCursor::Next() {
  while (at_ < to_) {
    const std::byte* header = data_ + (at_ & (size_ - 1));
    const uint32_t word = LoadAcquire<uint32_t>(header);
    if ((word & BPF_RINGBUF_BUSY_BIT) != 0) return nullptr;
    const size_t length = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    const size_t whole = (length + kHeaderBytes + 7) & ~size_t{7};
    // This can't be: the kernel writes the header before it moves the position.
    if (whole > to_ - at_ || whole > size_) return nullptr;
    next_ = at_ + whole;
    if ((word & BPF_RINGBUF_DISCARD_BIT) == 0) {
      record_ = {header + kHeaderBytes, length};
      return &record_;
    }
    at_ = next_;
  }
  return nullptr;
}

absl::StatusOr<RingReader> RingReader::Map(int map_fd, size_t ring_bytes) {
  RingReader ring;
  ring.page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* consumer = mmap(nullptr, ring.page_, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
  if (consumer == MAP_FAILED) return ErrnoError(errno, "mapping the ring buffer");
  ring.consumer_ = static_cast<std::byte*>(consumer);
  ring.size_ = ring_bytes;
  void* producer =
      mmap(nullptr, ring.page_ + 2 * ring_bytes, PROT_READ, MAP_SHARED, map_fd, static_cast<off_t>(ring.page_));
  if (producer == MAP_FAILED) return ErrnoError(errno, "mapping the ring buffer");
  ring.producer_ = static_cast<const std::byte*>(producer);
  return ring;
}

RingReader::RingReader(RingReader&& other) noexcept { *this = std::move(other); }

RingReader& RingReader::operator=(RingReader&& other) noexcept {
  if (this != &other) {
    Unmap();
    consumer_ = std::exchange(other.consumer_, nullptr);
    producer_ = std::exchange(other.producer_, nullptr);
    size_ = other.size_;
    page_ = other.page_;
    cursor_ = other.cursor_;
    released_ = other.released_;
  }
  return *this;
}

RingReader::~RingReader() { Unmap(); }

void RingReader::Unmap() {
  if (consumer_ != nullptr) munmap(std::exchange(consumer_, nullptr), page_);
  if (producer_ != nullptr) munmap(const_cast<std::byte*>(std::exchange(producer_, nullptr)), page_ + 2 * size_);
}

void RingReader::Begin() {
  if (producer_ == nullptr) return;
  // unsigned long in the kernel: 64 bits on both architectures
  released_ = LoadAcquire<uint64_t>(consumer_);
  cursor_ = RingCursor(producer_ + page_, size_, released_, LoadAcquire<uint64_t>(producer_));
}

void RingReader::Pop() {
  cursor_.Pop();
  // Room is given back in steps, so that writers need not wait for the whole.
  if (cursor_.position() - released_ >= kReleaseBytes) End();
}

void RingReader::End() {
  if (producer_ == nullptr) return;
  released_ = cursor_.position();
  __atomic_store_n(reinterpret_cast<uint64_t*>(consumer_), released_, __ATOMIC_RELEASE);
}

size_t RingReader::waiting() const {
  return producer_ == nullptr ? 0 : LoadAcquire<uint64_t>(producer_) - LoadAcquire<uint64_t>(consumer_);
}

}  // namespace clrsampler
