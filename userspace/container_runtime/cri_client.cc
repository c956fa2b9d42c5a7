#include "container_runtime/cri_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/grpc/grpc_message.h"
#include "formats/labels/cri_messages.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr long kConnectSeconds = 2;
constexpr long kCallSeconds = 3;
constexpr char kHost[] = "http://localhost";  // of the :authority field; the socket is the address
constexpr char kVersionHint[] =
    "it must speak version v1 of the Container Runtime Interface, as containerd 1.6 and CRI-O 1.23 do";

const char* HintFor(int error) {
  switch (error) {
    case ENOENT:
      return "--cri-socket is that of this node's runtime: /run/containerd/containerd.sock, /run/crio/crio.sock";
    case EACCES:
    case EPERM:
      return "the socket belongs to root: run clrsampler as root, or give its user the socket's group";
    default:
      return "see whether the socket is that of a container runtime, and whether this one is well: crictl info";
  }
}

}  // namespace

PosterOptions CriPosterOptions(const std::string& socket) {
  PosterOptions options;
  options.form = HttpForm::kHttp2Plain;
  options.unix_socket = socket;
  options.field_prefix = "grpc-";
  options.connect_seconds = kConnectSeconds;
  options.transfer_seconds = kCallSeconds;
  options.answer_bytes = kMaxCriAnswerBytes;
  return options;
}

absl::Status CheckCriSocket(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return absl::InvalidArgumentError("its path is too long for a socket");
  std::copy(socket.begin(), socket.end(), address.sun_path);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError(errno, "socket");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return absl::OkStatus();
  const int error = errno;
  return WithHint(ErrnoError(error, socket), HintFor(error));
}

CriAnswer CriClient::Ask(const CriQuestion& question) {
  CriAnswer answer;
  answer.number = question.number;
  answer.result = CriResult::kUnknown;
  for (const std::string& id : question.ids) {
    absl::StatusOr<std::optional<ProcessLabels>> labels = AskOne(id);
    if (!labels.ok()) {
      answer.result = absl::IsUnavailable(labels.status()) ? CriResult::kUnreachable : CriResult::kBad;
      answer.failure = std::string(labels.status().message());
      answer.hint = HintOf(labels.status());
      if (answer.hint.empty()) answer.hint = HintFor(0);
      return answer;
    }
    if (!labels->has_value()) continue;
    answer.result = CriResult::kKnown;
    answer.labels = **std::move(labels);
    // The process runs in a container that this one has made, from any image.
    if (&id != &question.ids.back()) answer.labels.DropImage();
    return answer;
  }
  return answer;
}

absl::StatusOr<std::optional<ProcessLabels>> CriClient::AskOne(const std::string& id) {
  ASSIGN_OR_RETURN(const std::string containers, Call(kListContainers, ListContainersRequest(id)));
  absl::StatusOr<std::optional<CriContainer>> container = ParseListContainers(containers, id);
  if (!container.ok()) return Annotate(container.status(), "its answer about a container can't be used");
  if (!container->has_value()) return std::optional<ProcessLabels>();
  ASSIGN_OR_RETURN(const std::string pods, Call(kListPodSandbox, ListPodSandboxRequest((*container)->pod)));
  absl::StatusOr<std::optional<ProcessLabels>> labels = ParseListPodSandbox(pods, (*container)->pod);
  if (!labels.ok()) return Annotate(labels.status(), "its answer about a pod can't be used");
  if (!labels->has_value()) return std::optional<ProcessLabels>();  // it has ended meanwhile
  (*labels)->FillFrom((*container)->labels);
  if ((*labels)->Get(LabelKey::kImageName).empty()) {
    // The image is worth a question. A failure does not fail the rest.
    const absl::StatusOr<std::string> status = Call(kContainerStatus, ContainerStatusRequest(id));
    const absl::StatusOr<ProcessLabels> image = status.ok() ? ParseContainerStatus(*status, id) : status.status();
    if (image.ok()) (*labels)->FillFrom(*image);
  }
  return labels;
}

absl::StatusOr<std::string> CriClient::Call(absl::string_view method, absl::string_view request) {
  const PostOutcome outcome = poster_->Post(
      absl::StrCat(kHost, method), {"Content-Type: application/grpc", "TE: trailers", "grpc-accept-encoding: identity"},
      GrpcFrame(request, /*compressed=*/false));
  if (outcome.status == 0) {
    const absl::Status checked = check_();
    if (!checked.ok()) return WithHint(absl::UnavailableError(checked.message()), HintOf(checked));
    return WithHint(absl::UnavailableError(absl::StrCat("it gives no answer: ", outcome.error)), HintFor(0));
  }
  if (outcome.cut) return absl::ResourceExhaustedError("its answer does not end");
  const GrpcStatus status = GrpcStatusOf(outcome.status, outcome.fields);
  if (status.code != GrpcCode::kOk) {
    const std::string said = absl::StrCat("it answers with the gRPC status ", GrpcCodeText(status.code),
                                          status.message.empty() ? "" : ": ", status.message);
    return WithHint(absl::FailedPreconditionError(said), kVersionHint);
  }
  const absl::StatusOr<absl::string_view> message = GrpcUnframe(outcome.answer);
  if (!message.ok()) return Annotate(message.status(), "its answer can't be read");
  return std::string(*message);
}

}  // namespace clrsampler
