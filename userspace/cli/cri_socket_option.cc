#include "cli/cri_socket_option.h"

#include <sys/un.h>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "status/status.h"

namespace clrsampler {

void DeclareCriSocket(CLI::App& app, std::string& socket) {
  app.add_option("--cri-socket", socket,
                 "socket of the node's container runtime, which says pod, container and image of processes\n"
                 "(docs/labels.md): /run/containerd/containerd.sock or /run/crio/crio.sock")
      ->type_name("PATH");
}

absl::StatusOr<std::string> ParseCriSocket(const std::string& text) {
  constexpr char kHint[] = "it is that of the node's runtime: /run/containerd/containerd.sock or /run/crio/crio.sock";
  absl::string_view path = text;
  absl::ConsumePrefix(&path, "unix://");
  if (!text.empty() && !absl::StartsWith(path, "/")) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--cri-socket ", text, " is no path that begins with /")),
                    kHint);
  }
  if (path.size() >= sizeof sockaddr_un{}.sun_path) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--cri-socket ", text, " is too long for a socket")),
                    kHint);
  }
  return std::string(path);
}

}  // namespace clrsampler
