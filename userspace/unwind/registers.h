// The input and output of one step of an unwind, and the stack words that a sample brought along.
#ifndef CLRSAMPLER_UNWIND_REGISTERS_H_
#define CLRSAMPLER_UNWIND_REGISTERS_H_

#include <cstdint>
#include <optional>

namespace clrsampler {

// The registers of one frame, as they were in it: for the leaf as sampled, for a caller as they are when the call
// returns.
struct UnwindRegisters {
  uint64_t ip = 0;
  uint64_t sp = 0;
  uint64_t fp = 0;  // rbp, x29
  uint64_t lr = 0;  // x30, known for the leaf only; 0 on x86-64
  // False: `sp` is too low by an amount that is not known. A frame record of arm64 says where its frame begins, which
  // is not where it ends.
  bool sp_exact = true;
  bool fp_known = true;  // false: `fp` is 0 because nothing says what it is
  // All registers of a leaf on x86-64, 16 of them by their DWARF numbers; nullptr for callers and on arm64.
  const uint64_t* general = nullptr;
};

// The stack of one sample. Words that were not shipped are not there, and nothing is read from the live process: it has
// moved on since.
class StackMemory {
 public:
  virtual ~StackMemory() = default;
  // The 8 bytes at `address`; nullopt: not shipped, or unaligned.
  virtual std::optional<uint64_t> Word(uint64_t address) const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_REGISTERS_H_
