#include "cli/lines_option.h"

#include <CLI/CLI.hpp>
#include <string>

namespace clrsampler {

void DeclareLines(CLI::App& app, LineOptions& lines) {
  app.add_flag("--lines", lines.wanted,
               "file and line of each managed and native frame (docs/lines.md).\n"
               "PDBs are looked for inside the assembly, beside it, and where the compiler wrote them");
  app.add_option("--pdb-path", lines.pdb_folders,
                 "another folder with PDBs; may be given several times; implies --lines")
      ->each([&lines](const std::string&) { lines.wanted = true; })
      ->allow_extra_args(false)
      ->type_name("DIR");
}

void DeclareCode(CLI::App& app, bool& keep_code) {
  app.add_flag(
      "--code", keep_code,
      "keep the machine code of the methods that samples meet, with the samples of each instruction, in .json,\n"
      ".html and .jitdump: for clrsampler annotate; implies --lines");
}

void DeclareEmbedSource(CLI::App& app, LineOptions& lines) {
  app.add_flag("--embed-source", lines.source_texts,
               "put the text of the source files into pages and .json, of those that are here as they were compiled;\n"
               "implies --lines");
}

}  // namespace clrsampler
