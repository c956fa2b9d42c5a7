// clrsampler stacks --pid PID: where every thread of a process stands now.
#ifndef CLRSAMPLER_CLI_STACKS_COMMAND_H_
#define CLRSAMPLER_CLI_STACKS_COMMAND_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "clr/lines/assembly_pdbs.h"
#include "formats/names/frame_text.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct StacksConfig {
  uint32_t pid = 0;
  NameStyle names = NameStyle::kShort;
  LineOptions lines;
  bool json = false;
};

void DeclareStacksOptions(CLI::App& app, StacksConfig& config);
absl::Status RunStacks(const StacksConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_STACKS_COMMAND_H_
