// A function of the agent's own that nothing but its trials of probes calls (trap_cost.h, uprobe.h). It begins as those
// of a runtime do.
#ifndef CLRSAMPLER_CAPTURE_PROBED_FUNCTION_H_
#define CLRSAMPLER_CAPTURE_PROBED_FUNCTION_H_

#include <cstdint>
#include <optional>

extern "C" void clrsampler_probed_function();

namespace clrsampler {

// Where it begins in /proc/self/exe; nullopt: in none of the program's segments.
std::optional<uint64_t> ProbedFunctionOffset();

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_PROBED_FUNCTION_H_
