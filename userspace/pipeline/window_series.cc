#include "pipeline/window_series.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "os/own_usage.h"

namespace clrsampler {
namespace {

constexpr uint64_t kNoticesRepeatNs = 3'600'000'000'000;  // what lasts is said once an hour

}  // namespace

void WindowSeries::Begin() {
  main_loop_.Check();
  times_.Begin(clock_.Now(), unix_now_());
  builder_.Begin(times_.begin(), times_.begin_unix_ns());
}

Window WindowSeries::Close(MonotonicTime end, Account account, std::vector<uint32_t> rates) {
  main_loop_.Check();
  const WindowTimes times = times_.Close(end, unix_now_() - (clock_.Now().ns - end.ns));
  WindowBuilder::Taken taken = builder_.Take(times.length_ns);
  Window window = std::move(taken.window);
  for (const auto& [view, status] : taken.lost) {
    notices_.Add("window_lost", absl::StrCat(times.number, ProfileViewText(view)),
                 absl::StrCat("the view ", ProfileViewText(view), " of a window is lost: ", status.message()),
                 "a lower --frequency, or fewer processes: --comm, --container, --cgroup, --uid");
    if (view == ProfileView::kCpu) account.lost["window"] += std::exchange(account.samples_written, 0);
  }
  // The account of frames is the builder's.
  account.managed = window.account.managed;
  account.native = window.account.native;
  account.kernel = window.account.kernel;
  account.frames_by_source = window.account.frames_by_source;
  account.unnamed_reasons = std::move(window.account.unnamed_reasons);
  account.marks = std::move(window.account.marks);
  account.roles = std::move(window.account.roles);
  if (const uint64_t left_out = window.account.traces["left_out"]; left_out > 0) {
    account.traces["left_out"] = left_out;
    notices_.Add("trace_ids_left_out", "",
                 absl::StrCat(left_out, " samples of a window have no trace and span: a window keeps ",
                              Window::kMaxLinks, " spans"),
                 "shorter windows: --window");
  }
  account.frames_with_line = window.account.frames_with_line;
  account.native_frames_with_line = window.account.native_frames_with_line;
  account.duration_seconds = static_cast<double>(times.length_ns) / 1e9;
  window.account = std::move(account);
  window.number = times.number;
  window.begin_unix_ns = times.begin_unix_ns;
  window.end_unix_ns = times.end_unix_ns;
  window.clock_jump_ns = times.clock_jump_ns;
  window.frequency_hz = rates.back();
  window.frequencies_hz = std::move(rates);
  window.rss_bytes = ReadOwnMemory().resident_bytes;

  builder_.Begin(times_.begin(), times_.begin_unix_ns());
  if (end.ns - notices_repeated_.ns >= kNoticesRepeatNs) {
    notices_repeated_ = end;
    notices_.Repeat();
  }
  return window;
}

}  // namespace clrsampler
