// Asks a container runtime about a container, by the Kubernetes Container Runtime Interface: gRPC over a Unix socket.
//
// Blocks, for some seconds at most. Runs in the asking process (cri_process.h).
#ifndef CLRSAMPLER_CONTAINER_RUNTIME_CRI_CLIENT_H_
#define CLRSAMPLER_CONTAINER_RUNTIME_CRI_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "container_runtime/cri_wire.h"
#include "os/http_poster.h"

namespace clrsampler {

// The options of one call. A container takes two calls, or three where its image has no name in the first one.
PosterOptions CriPosterOptions(const std::string& socket);

// Why a connection to the socket can't be made, with a hint; OK: one can be made.
absl::Status CheckCriSocket(const std::string& socket);

class CriClient {
 public:
  // `check`: asked where a call had no answer.
  CriClient(std::unique_ptr<HttpPoster> poster, std::function<absl::Status()> check)
      : poster_(std::move(poster)), check_(std::move(check)) {}

  CriAnswer Ask(const CriQuestion& question);

 private:
  // nullopt: the runtime does not know it. Unavailable: it gave no answer.
  absl::StatusOr<std::optional<ProcessLabels>> AskOne(const std::string& id);
  // The message that the answer holds.
  absl::StatusOr<std::string> Call(absl::string_view method, absl::string_view request);

  const std::unique_ptr<HttpPoster> poster_;
  const std::function<absl::Status()> check_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CONTAINER_RUNTIME_CRI_CLIENT_H_
