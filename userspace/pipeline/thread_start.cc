#include "pipeline/thread_start.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/string_view.h"

namespace clrsampler {

bool StartsThread(const Frame& frame) {
  static constexpr absl::string_view kStarts[] = {"_start",
                                                  "__libc_start_main",
                                                  "__libc_start_main_impl",
                                                  "__libc_start_call_main",
                                                  "start_thread",
                                                  "clone",
                                                  "__clone",
                                                  "clone3",
                                                  "__clone3",
                                                  "thread_start"};
  if (frame.kind != FrameKind::kNative || frame.source != NameSource::kElfSymbols) return false;
  const absl::string_view text = frame.text;
  const absl::string_view symbol = text.substr(text.rfind('!') + 1);  // full style: libc.so.6!start_thread
  return std::find(std::begin(kStarts), std::end(kStarts), symbol) != std::end(kStarts);
}

}  // namespace clrsampler
