// --cri-socket, of commands that name the containers of processes.
#ifndef CLRSAMPLER_CLI_CRI_SOCKET_OPTION_H_
#define CLRSAMPLER_CLI_CRI_SOCKET_OPTION_H_

#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

void DeclareCriSocket(CLI::App& app, std::string& socket);

// The path, also of "unix:///run/crio/crio.sock", as Kubernetes' own tools take it. Empty: the option is not given.
absl::StatusOr<std::string> ParseCriSocket(const std::string& text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_CRI_SOCKET_OPTION_H_
