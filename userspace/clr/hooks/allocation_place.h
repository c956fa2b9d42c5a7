// Where the collector has counted so much allocated memory that it tells its event sink, and where the facts are there.
#ifndef CLRSAMPLER_CLR_HOOKS_ALLOCATION_PLACE_H_
#define CLRSAMPLER_CLR_HOOKS_ALLOCATION_PLACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/elf/address_conversion.h"

namespace clrsampler {

// A value at the moment at which a probe is hit.
struct ProbeValue {
  enum class Kind : uint8_t {
    kUnknown,
    kRegister,  // number: the register's, as DWARF counts them
    kFrame,     // the word at the frame pointer + number
    kConstant,  // number
  };
  Kind kind = Kind::kUnknown;
  int32_t number = 0;

  friend bool operator==(const ProbeValue&, const ProbeValue&) = default;
};

// Bytes that were allocated since the collector last told, the heap that they lie in, and the address of the object
// that is being allocated. At the entry of a function `heap` is a generation (0 to 2 small objects, 3 large, 4 pinned),
// at a site the event's own word (0, 1, 2); there it may be unknown.
struct AllocationFacts {
  ProbeValue bytes, heap, object;
  bool of_one_heap = false;  // a function's entry: the heap comes before these arguments, as in the server collector

  friend bool operator==(const AllocationFacts&, const AllocationFacts&) = default;
};

// Inside of a function: a branch that is taken where somebody listens to events.
struct AllocationSite {
  uint64_t offset = 0;  // from the function's first byte
  AllocationFacts facts;
};

// The reports in one function.
struct AllocationReports {
  // Functions that are called where the sum is above the limit.
  std::vector<VirtualAddress> called;
  // Places where the report stands in this function itself.
  std::vector<AllocationSite> sites;
  size_t unknown_sites = 0;  // those that are not understood
  size_t resets = 0;         // places where the sum begins anew once it is above the limit: one for each report
  size_t followed = 0;       // places from which a report was looked for
};

// Each of these places takes the time of a hundred instructions. A search ends where an image has more of them.
// libcoreclr.so 11.0.0 for arm64 has 178.
constexpr size_t kMaxFollowed = 10'000;

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_ALLOCATION_PLACE_H_
