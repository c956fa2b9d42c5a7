// Wrong usage of the command line, said with the help that belongs to it.
#ifndef CLRSAMPLER_CLI_USAGE_H_
#define CLRSAMPLER_CLI_USAGE_H_

#include "absl/status/status.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace clrsampler {

// The error of `app`'s parser. `record`: the subcommand that also runs without its word.
absl::Status WrongUsage(const CLI::App& app, const CLI::App* record, const CLI::ParseError& error);

// Words that the chosen command does not look at: options of record before another command or on both sides of its own
// word, and a command behind --, which only record starts.
absl::Status CheckPlaces(const CLI::App& app, const CLI::App* record, bool has_command);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_USAGE_H_
