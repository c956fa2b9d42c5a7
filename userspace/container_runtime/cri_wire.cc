#include "container_runtime/cri_wire.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "formats/proc/cgroup_identity.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxFailureBytes = 500;
constexpr size_t kAnswerFields = 4;  // before the labels

// One line without control characters, whatever a server put into it.
std::string Line(absl::string_view text) {
  std::string line(text.substr(0, kMaxFailureBytes));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }, ' ');
  return line;
}

}  // namespace

std::string CriQuestionText(const CriQuestion& question) {
  return absl::StrCat(question.number, "\n", absl::StrJoin(question.ids, "\n"));
}

std::optional<CriQuestion> ParseCriQuestion(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, '\n');
  CriQuestion question;
  if (!absl::SimpleAtoi(fields[0], &question.number)) return std::nullopt;
  for (size_t i = 1; i < fields.size(); ++i) question.ids.emplace_back(fields[i]);
  if (question.ids.empty() || question.ids.size() > kMaxNestedContainers ||
      !std::all_of(question.ids.begin(), question.ids.end(), IsContainerId)) {
    return std::nullopt;
  }
  return question;
}

std::string CriAnswerText(const CriAnswer& answer) {
  std::string text = absl::StrCat(answer.number, "\n", static_cast<int>(answer.result), "\n", Line(answer.failure),
                                  "\n", Line(answer.hint));
  for (size_t i = 0; i < kLabelKeys; ++i) absl::StrAppend(&text, "\n", answer.labels.Get(static_cast<LabelKey>(i)));
  return text;
}

std::optional<CriAnswer> ParseCriAnswer(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, '\n');
  CriAnswer answer;
  int result = 0;
  if (fields.size() != kAnswerFields + kLabelKeys || !absl::SimpleAtoi(fields[0], &answer.number) ||
      !absl::SimpleAtoi(fields[1], &result) || result < 0 || result > static_cast<int>(CriResult::kUnreachable)) {
    return std::nullopt;
  }
  answer.result = static_cast<CriResult>(result);
  answer.failure = Line(fields[2]);
  answer.hint = Line(fields[3]);
  for (size_t i = 0; i < kLabelKeys; ++i) answer.labels.Set(static_cast<LabelKey>(i), fields[kAnswerFields + i]);
  return answer;
}

}  // namespace clrsampler
