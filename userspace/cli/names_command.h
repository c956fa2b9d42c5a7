// `clrsampler names`: what the sources of names say of code addresses of a running process, as tab-separated text.
#ifndef CLRSAMPLER_CLI_NAMES_COMMAND_H_
#define CLRSAMPLER_CLI_NAMES_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clr/lines/assembly_pdbs.h"
#include "formats/names/frame_text.h"
#include "symbols/frame.h"

namespace CLI {
class App;
}

namespace clrsampler {

struct NamesConfig {
  uint32_t pid = 0;
  std::vector<std::string> addresses;
  std::string addresses_file;
  uint64_t random = 0;
  uint64_t seed = 1;
  std::vector<std::string> without;
  NameStyle names = NameStyle::kRaw;
  LineOptions lines;
};

void DeclareNamesOptions(CLI::App& app, NamesConfig& config);

// Columns: address, kind, source, type, method, module, tier, text; with lines also file, line, column and kind of
// line. Type and method are split from the raw text.
//
// One such row without its end. The names are the target's: none of their bytes makes a column, a row or a command of
// the terminal.
std::string NamesRow(uint64_t address, const Frame& frame, bool with_line);
absl::Status RunNames(const NamesConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_NAMES_COMMAND_H_
