#include "cli/usage.h"

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The chosen subcommand but record; nullptr: record is to run.
const CLI::App* OtherCommand(const CLI::App& app, const CLI::App* record) {
  for (const CLI::App* chosen : app.get_subcommands()) {
    if (chosen != record) return chosen;
  }
  return nullptr;
}

// An option on both sides of the word would lose one of its values.
absl::Status CheckRepeated(const CLI::App& app, const CLI::App& record) {
  for (const CLI::Option* before : app.parse_order()) {
    for (const CLI::Option* behind : record.parse_order()) {
      if (before->get_name() != behind->get_name()) continue;
      return WithHint(absl::InvalidArgumentError(
                          absl::StrCat(before->get_name(), " is given before and behind ", record.get_name())),
                      absl::StrCat("give it once, behind ", record.get_name()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WrongUsage(const CLI::App& app, const CLI::App* record, const CLI::ParseError& error) {
  std::string name = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) absl::StrAppend(&name, " ", chosen->get_name());
  std::string hint = absl::StrCat(name, " --help lists the options");
  const bool stray = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (stray && OtherCommand(app, record) == nullptr) {
    hint = absl::StrCat("--pid PID samples a running process, -- COMMAND starts one; ", hint);
  }
  return WithHint(absl::InvalidArgumentError(error.what()), hint);
}

absl::Status CheckPlaces(const CLI::App& app, const CLI::App* record, bool has_command) {
  const CLI::App* chosen = OtherCommand(app, record);
  if (chosen == nullptr) return CheckRepeated(app, *record);
  if (!app.parse_order().empty()) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat(app.parse_order().front()->get_name(), " before ",
                                                            chosen->get_name(), " has no effect")),
                    absl::StrCat("clrsampler ", chosen->get_name(), " --help lists its options, which come after it"));
  }
  if (!has_command) return absl::OkStatus();
  return WithHint(
      absl::InvalidArgumentError(absl::StrCat(chosen->get_name(), " starts no program, and takes nothing behind --")),
      "leave it out; clrsampler -- COMMAND records a program from its start");
}

}  // namespace clrsampler
