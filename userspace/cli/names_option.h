// --names, of all commands that print names of code, and what else decides about names.
#ifndef CLRSAMPLER_CLI_NAMES_OPTION_H_
#define CLRSAMPLER_CLI_NAMES_OPTION_H_

#include <string>

#include "formats/names/frame_text.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

void DeclareNames(CLI::App& app, NameStyle& names, const std::string& help = "short, full or raw");

// --try-unknown-runtime.
void DeclareTryUnknownRuntime(CLI::App& app, bool& try_unknown_runtime);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_NAMES_OPTION_H_
