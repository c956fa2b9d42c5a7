#include "cli/names_option.h"

#include <CLI/CLI.hpp>

namespace clrsampler {

void DeclareNames(CLI::App& app, std::string& names, const std::string& help) {
  app.add_option("--names", names, help)
      ->check(CLI::IsMember({"short", "full", "raw"}))
      ->capture_default_str()
      ->type_name("STYLE");
}

void DeclareTryUnknownRuntime(CLI::App& app, bool& try_unknown_runtime) {
  app.add_flag(
      "--try-unknown-runtime", try_unknown_runtime,
      "read a .NET runtime that is newer than all known ones as the newest of them, if its descriptor and its\n"
      "own library fit; names then end in [unverified runtime]");
}

NameStyle ParseNames(absl::string_view names) {
  if (names == "full") return NameStyle::kFull;
  return names == "raw" ? NameStyle::kRaw : NameStyle::kShort;
}

}  // namespace clrsampler
