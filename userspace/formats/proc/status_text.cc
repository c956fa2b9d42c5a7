#include "formats/proc/status_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "formats/proc/fields.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxNesting = 33;  // MAX_PID_NS_LEVEL of the kernel is 32

std::vector<uint32_t> Numbers(absl::string_view text) {
  std::vector<uint32_t> numbers;
  while (numbers.size() < kMaxNesting) {
    TakeBlanks(text);
    const std::optional<uint32_t> number = TakeDecimal32(text);
    if (!number) break;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<uint32_t> OneNumber(absl::string_view text) {
  TakeBlanks(text);
  return TakeDecimal32(text);
}

}  // namespace

absl::StatusOr<StatusText> ParseStatus(absl::string_view text) {
  StatusText status;
  bool has_tgid = false, has_pid = false, has_uid = false;
  while (!text.empty()) {
    const absl::string_view line = TakeLine(text);
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    const absl::string_view key = line.substr(0, colon);
    absl::string_view value = line.substr(colon + 1);
    if (key == "Name") {
      TakeChar(value, '\t');
      status.name = absl::StrReplaceAll(value, {{"\\n", "\n"}, {"\\\\", "\\"}});
    } else if (key == "Tgid") {
      const std::optional<uint32_t> number = OneNumber(value);
      has_tgid = number.has_value();
      status.tgid = number.value_or(0);
    } else if (key == "Pid") {
      const std::optional<uint32_t> number = OneNumber(value);
      has_pid = number.has_value();
      status.pid = number.value_or(0);
    } else if (key == "PPid") {
      status.parent_pid = OneNumber(value).value_or(0);
    } else if (key == "Threads") {
      status.threads = OneNumber(value).value_or(0);
    } else if (key == "TracerPid") {
      status.tracer_pid = OneNumber(value).value_or(0);
    } else if (key == "Uid") {
      const std::vector<uint32_t> uids = Numbers(value);  // real, effective, saved, file system
      has_uid = uids.size() >= 2;
      if (has_uid) status.real_uid = uids[0];
      if (has_uid) status.effective_uid = uids[1];
    } else if (key == "NStgid") {
      status.namespace_tgids = Numbers(value);
    } else if (key == "NSpid") {
      status.namespace_pids = Numbers(value);
    } else if (key == "voluntary_ctxt_switches" || key == "nonvoluntary_ctxt_switches") {
      TakeBlanks(value);
      status.switches += TakeDecimal(value).value_or(0);
    }
  }
  if (!has_tgid || !has_pid || !has_uid) return absl::DataLossError("no Tgid, Pid or Uid in the process status");
  return status;
}

}  // namespace clrsampler
