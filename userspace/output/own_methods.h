// How much of a profile each method of the program itself has: with what the libraries and the runtime did for it.
// Pure.
#ifndef CLRSAMPLER_OUTPUT_OWN_METHODS_H_
#define CLRSAMPLER_OUTPUT_OWN_METHODS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/profile/profile_model.h"

namespace clrsampler {

struct OwnWeight {
  std::string name;
  uint64_t weight = 0;  // of samples in which it is the innermost method of the program
  std::string mostly;   // what most of that is, by OwnMostly
};

enum class OwnMostly : uint8_t {
  kCallee,  // what the method called; "[jit]" for compilations; empty: nothing, it is its own code
  kType,    // the type that is allocated or thrown; empty: not known
};

// Most weight first. Methods of System and Microsoft, and what is not managed, are none of the program's own; formats
// that do not say what is managed have no others. Methods of the samples for whose row `wanted` has a 1; empty: of all.
std::vector<OwnWeight> OwnMethods(const ProfileModel& model, std::span<const uint8_t> wanted = {},
                                  OwnMostly mostly = OwnMostly::kCallee);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_OWN_METHODS_H_
