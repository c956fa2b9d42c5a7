// clrsampler attach: puts the profiler library into a .NET process, and counts what it says until it is taken out
// again.
#ifndef CLRSAMPLER_CLI_ATTACH_COMMAND_H_
#define CLRSAMPLER_CLI_ATTACH_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipeline/library_watch.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct AttachConfig {
  uint32_t pid = 0;
  std::optional<std::string> duration;
  std::vector<std::string> kinds;  // empty: the usual ones
  bool json = false;
};

void DeclareAttachOptions(CLI::App& app, AttachConfig& config);
absl::Status RunAttach(const AttachConfig& config);

// Bits of InprocessKindBit for names of events; the usual ones for none.
// `at_start`: of a program that is started with the library. Then objects come only where they are named: the runtime
// tells of each one, and keeps a library that has asked for it.
uint64_t LibraryKindsFor(const std::vector<std::string>& names, bool at_start = false);
// Tells people on standard error what they should know of the result.
void SayWhatTheLibraryMissed(const LibraryWatchResult& result);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_ATTACH_COMMAND_H_
