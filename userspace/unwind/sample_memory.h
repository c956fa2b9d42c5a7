// The stack words of one sample, by address.
#ifndef CLRSAMPLER_UNWIND_SAMPLE_MEMORY_H_
#define CLRSAMPLER_UNWIND_SAMPLE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "unwind/raw_stack.h"
#include "unwind/registers.h"

namespace clrsampler {

// Borrows the record. An unwind asks for words of rising addresses, for which a look-up is one comparison.
class SampleMemory : public StackMemory {
 public:
  // Takes the place of what was there; keeps its own memory for the next sample.
  void Assign(const RawStack& stack);

  std::optional<uint64_t> Word(uint64_t address) const override;

 private:
  struct Run {
    uint64_t begin;  // address of the first word
    std::span<const uint64_t> words;
    uint64_t end() const { return begin + words.size() * sizeof(uint64_t); }
  };
  void Append(uint64_t begin, std::span<const uint64_t> words);
  const Run* RunAt(uint64_t address) const;

  std::vector<Run> runs_;    // by address, without overlaps
  mutable size_t last_ = 0;  // the run of the last answer
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_SAMPLE_MEMORY_H_
