// The commands of the program but `record`, which is also what runs without a word, and those with parsers of their
// own.
#ifndef CLRSAMPLER_CLI_COMMANDS_H_
#define CLRSAMPLER_CLI_COMMANDS_H_

#include <functional>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct Command {
  const char* name;
  const char* summary;
  // Declares the command's options. The function that it returns runs the command after parsing, and gives the exit
  // status.
  std::function<std::function<int()>(CLI::App&)> declare;
};

// In the order of --help.
std::vector<Command> Commands();

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_COMMANDS_H_
