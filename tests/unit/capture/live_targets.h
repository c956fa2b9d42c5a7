// Child processes with known behaviour, and a decoder of samples that shares no code with the product.
#ifndef CLRSAMPLER_TESTS_UNIT_CAPTURE_LIVE_TARGETS_H_
#define CLRSAMPLER_TESTS_UNIT_CAPTURE_LIVE_TARGETS_H_

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "clrsampler/wire.h"

namespace clrsampler::test_support {

// The words of a target about itself, in memory shared with the test.
struct TargetFacts {
  std::atomic<uint32_t> waiting;  // for Go, under its name
  std::atomic<uint32_t> ready;
  // Return addresses of Leaf (into Middle) and Middle (into Outer), as the compiler made them.
  std::atomic<uint64_t> leaf_returns_to;
  std::atomic<uint64_t> middle_returns_to;
  std::atomic<uint64_t> recursion_returns_to;
  std::atomic<int32_t> grandchild;
};

inline constexpr uint64_t kGapPattern = 0x6761702070617474;

enum class Behaviour {
  kBurn,          // Outer > Middle > Leaf, which computes and keeps kGapPattern on its stack
  kSystemCalls,   // the same, but Leaf reads /dev/zero without end
  kRecurse,       // 700 frames deep
  kForkThenBurn,  // a child of it burns, it waits
  kDataInFp,      // the same, below a frame of 9 KB that has saved the frame pointer and keeps a number in it
  kBeat,          // works for 3 ms of each 10, to the clock
  kFreeMaps,      // makes kernel threads work: large BPF maps are freed by them
};

// A process whose frame-pointer chain ends in a zero, as clone(2) starts it. Killed by the destructor.
class Target {
 public:
  explicit Target(Behaviour behaviour, int clone_flags = 0);
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target();

  pid_t pid() const { return pid_; }
  // The CPU time that it has used by now, in seconds, with the child that burns for it.
  double UsedSeconds() const;
  const TargetFacts& facts() const { return *facts_; }
  // It runs only from now on, and is known to when this returns.
  void Go();
  // Ends it and returns the processor time it has used, in seconds.
  double Stop();

 private:
  TargetFacts* facts_;
  std::vector<std::byte> stack_;
  int go_[2];
  pid_t pid_;
  double used_seconds_ = 0;
};

struct DecodedFrame {
  uint64_t address, saved_fp, return_address;
  std::vector<uint64_t> gap;
};
struct DecodedSample {
  wire_cpu_sample head;
  std::vector<uint64_t> kernel;
  std::vector<DecodedFrame> frames;
  std::vector<uint64_t> tail;
  std::vector<uint64_t> user_words;  // all of the above that is no kernel's
  bool well_formed = false;          // all words were accounted for
};
DecodedSample Decode(std::span<const std::byte> record);
bool HasReturnAddress(const DecodedSample& sample, uint64_t address);

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_CAPTURE_LIVE_TARGETS_H_
