#include "capture/libbpf_log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace clrsampler {
namespace {
constexpr size_t kMaxLogBytes = 64 * 1024;
constexpr size_t kMaxPieceBytes = 1 << 20;  // the verifier's log arrives as one piece
LibbpfLog* current_log = nullptr;
}  // namespace

LibbpfLog::LibbpfLog() : outer_(current_log), previous_(libbpf_set_print(&Receive)) { current_log = this; }

LibbpfLog::~LibbpfLog() {
  current_log = outer_;
  libbpf_set_print(previous_);
}

int LibbpfLog::Receive(libbpf_print_level level, const char* format, va_list arguments) {
  LibbpfLog* log = current_log;
  if (log == nullptr || level != LIBBPF_WARN) return 0;
  va_list again;
  va_copy(again, arguments);
  const int bytes = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (bytes <= 0) return 0;
  std::string piece(std::min<size_t>(static_cast<size_t>(bytes), kMaxPieceBytes) + 1, '\0');
  vsnprintf(piece.data(), piece.size(), format, arguments);
  piece.pop_back();
  log->text_ += piece;
  if (log->text_.size() > kMaxLogBytes) log->text_.erase(0, log->text_.size() - kMaxLogBytes);
  return 0;
}

std::string LibbpfLog::Tail(int lines) const {
  std::vector<std::string> kept = absl::StrSplit(text_, '\n', absl::SkipWhitespace());
  if (kept.size() > static_cast<size_t>(lines)) kept.erase(kept.begin(), kept.end() - lines);
  return absl::StrJoin(kept, "\n");
}

}  // namespace clrsampler
