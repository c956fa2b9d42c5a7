#include "cli/names_option.h"

#include <CLI/CLI.hpp>

#include "cli/choice_option.h"

namespace clrsampler {

void DeclareNames(CLI::App& app, NameStyle& names, const std::string& help) {
  static constexpr Choice<NameStyle> kStyles[] = {
      {"short", NameStyle::kShort}, {"full", NameStyle::kFull}, {"raw", NameStyle::kRaw}};
  DeclareChoice(app, "--names", names, kStyles, help, "STYLE");
}

void DeclareTryUnknownRuntime(CLI::App& app, bool& try_unknown_runtime) {
  app.add_flag(
      "--try-unknown-runtime", try_unknown_runtime,
      "read a .NET runtime that is newer than all known ones, or has no version, as the newest of them, if its\n"
      "descriptor and its own library fit; names then end in [unverified runtime]");
}

}  // namespace clrsampler
