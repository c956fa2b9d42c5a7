// Any bytes as the line tables of a file. Properties: sequences are in order, each of some bytes, not at 0, and of a
// table inside the section; an error has a text.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/elf/line_sequences.h"

namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto sequences = clrsampler::ListLineSequences(std::as_bytes(std::span(data, size)));
  if (!sequences.ok()) {
    Require(!sequences.status().message().empty());
    return 0;
  }
  uint64_t last = 0;
  for (const clrsampler::LineSequence& sequence : *sequences) {
    Require(sequence.begin != 0 && sequence.begin < sequence.end && sequence.begin >= last && sequence.table < size);
    last = sequence.begin;
  }
  return 0;
}
