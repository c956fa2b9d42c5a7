// BTF of which all is asked for: what comes out names the same types, and comes out again as it is.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/btf/btf_subset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto require = [](bool condition) {
    if (!condition) __builtin_trap();
  };
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto names = clrsampler::BtfTypeNames(bytes);
  if (!names.ok()) return 0;
  const auto subset = clrsampler::BtfSubset(bytes, *names);
  require(subset.ok());
  const auto names_again = clrsampler::BtfTypeNames(*subset);
  require(names_again.ok() && *names_again == *names);
  const auto subset_again = clrsampler::BtfSubset(*subset, *names);
  require(subset_again.ok() && subset_again->size() <= subset->size());
  return 0;
}
