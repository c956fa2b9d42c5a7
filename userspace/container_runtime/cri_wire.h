// Questions about containers, and their answers, as the text of one datagram each.
//
// Neither side believes the other one: what can't be read is nullopt, and labels are cleaned again.
#ifndef CLRSAMPLER_CONTAINER_RUNTIME_CRI_WIRE_H_
#define CLRSAMPLER_CONTAINER_RUNTIME_CRI_WIRE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/labels/process_labels.h"

namespace clrsampler {

struct CriQuestion {
  uint64_t number = 0;
  std::vector<std::string> ids;  // of containers within each other, the outermost first
};

enum class CriResult : uint8_t {
  kKnown,        // the first of the ids that the runtime knows has these labels
  kUnknown,      // it knows none of them
  kBad,          // it answered, and not in a way that helps
  kUnreachable,  // it gave no answer
};

struct CriAnswer {
  uint64_t number = 0;
  CriResult result = CriResult::kUnreachable;
  std::string failure, hint;  // of the last two, for people
  ProcessLabels labels;
};

std::string CriQuestionText(const CriQuestion& question);
std::optional<CriQuestion> ParseCriQuestion(absl::string_view text);
std::string CriAnswerText(const CriAnswer& answer);
std::optional<CriAnswer> ParseCriAnswer(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CONTAINER_RUNTIME_CRI_WIRE_H_
