// --lines and its kin, of all commands that print frames of code.
#ifndef CLRSAMPLER_CLI_LINES_OPTION_H_
#define CLRSAMPLER_CLI_LINES_OPTION_H_

#include "clr/lines/assembly_pdbs.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

void DeclareLines(CLI::App& app, LineOptions& lines);
// --embed-source, of commands that write files with a place for texts.
void DeclareCode(CLI::App& app, bool& keep_code);
void DeclareEmbedSource(CLI::App& app, LineOptions& lines);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_LINES_OPTION_H_
