#ifndef CLRSAMPLER_TOOLS_UNWIND_CHECK_UNWIND_CHECK_H_
#define CLRSAMPLER_TOOLS_UNWIND_CHECK_UNWIND_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "process/process.h"
#include "unwind/code_finder.h"

namespace clrsampler {

// What is wrong with the two witnesses of a prologue, its bytes and its unwind data; empty: nothing. Methods for
// on-stack replacement are not to be asked about.
std::string PrologueDifference(const ManagedFunction& function);

// What is wrong with the epilogues that lie at the end of a function: followed from their first instruction they must
// lead where the codes lead. Empty: nothing. `recognised` is set when one was found.
std::string EpilogueDifference(const ManagedFunction& function, bool& recognised);

// As if a process had mapped the file whole. nullopt: it is not there, which was said.
std::optional<Mapping> WholeFile(const std::string& path);
Process ProcessOfFiles();

// Number of problems.
int CheckImages(const std::string& path);
int CheckProcess(uint32_t pid);
// For each address of standard input, an image's own: how a function is left that was interrupted there.
int CheckLeaves(const std::string& path);

}  // namespace clrsampler

#endif  // CLRSAMPLER_TOOLS_UNWIND_CHECK_UNWIND_CHECK_H_
