// Any bytes as the answers of a container runtime, with the frame that gRPC puts around them, and as what the process
// that asks tells the agent. Properties: labels are short, well-formed and without control characters, an answer is
// only taken by the one that it is about, and what is told is told the same a second time.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "container_runtime/cri_wire.h"
#include "formats/grpc/grpc_message.h"
#include "formats/labels/cri_messages.h"
#include "formats/names/utf8.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void Check(const ProcessLabels& labels) {
  labels.ForEach([](absl::string_view, const std::string& value) {
    Require(!value.empty() && value.size() <= kMaxLabelBytes && WellFormedUtf8(value) == value);
    for (const char c : value) Require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
}

void CheckAnswer(absl::string_view bytes) {
  const std::string id(64, 'a'), other(64, 'b');
  const auto container = ParseListContainers(bytes, id);
  if (container.ok() && container->has_value()) {
    Check((*container)->labels);
    Require(bytes.find(id) != absl::string_view::npos);
  }
  // A name of one container is none of another one, unless both are in the answer.
  const auto another = ParseListContainers(bytes, other);
  if (another.ok() && another->has_value()) Require(bytes.find(other) != absl::string_view::npos);
  if (const auto image = ParseContainerStatus(bytes, id); image.ok()) Check(*image);
  if (const auto pod = ParseListPodSandbox(bytes, "sandbox"); pod.ok() && pod->has_value()) Check(**pod);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  CheckAnswer(text);
  if (const auto message = GrpcUnframe(text); message.ok()) CheckAnswer(*message);
  const ImageReference image = ParseImageReference(text);
  Require(image.name.size() + image.tag.size() <= text.size());
  if (const auto answer = ParseCriAnswer(text)) {
    Check(answer->labels);
    const auto again = ParseCriAnswer(CriAnswerText(*answer));
    Require(again && again->number == answer->number && again->labels == answer->labels);
  }
  if (const auto question = ParseCriQuestion(text)) Require(ParseCriQuestion(CriQuestionText(*question)).has_value());
  return 0;
}
