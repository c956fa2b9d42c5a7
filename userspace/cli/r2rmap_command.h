// `clrsampler r2rmap FILE`: the rows of an r2rmap, or what a ready-to-run image says of its map; with --write a map
// made from the image.
#ifndef CLRSAMPLER_CLI_R2RMAP_COMMAND_H_
#define CLRSAMPLER_CLI_R2RMAP_COMMAND_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace clrsampler {

struct R2rMapConfig {
  std::string file;
  bool write = false;
  std::string output;
  std::vector<std::string> references;
};

void DeclareR2rMapOptions(CLI::App& app, R2rMapConfig& config);
absl::Status RunR2rMap(const R2rMapConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_R2RMAP_COMMAND_H_
