#include "serve/window_writer.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "export/signals_blocked.h"
#include "export/textfile.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr std::chrono::seconds kWait(1);
constexpr uint64_t kSayAgainNs = 60'000'000'000;

}  // namespace

std::string KindOfTrigger(const std::string& trigger) {
  std::string kind = trigger.substr(0, trigger.find('>'));
  kind.erase(kind.find_last_not_of(' ') + 1);
  return kind;
}

WindowWriter::WindowWriter(WindowWriterParts parts) : parts_(std::move(parts)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

WindowWriter::~WindowWriter() { thread_.join(); }

void WindowWriter::Run() {
  uint64_t last = 0;
  bool more_to_do = false;
  uint64_t now_unix_ns = 0;
  while (true) {
    const bool closed = parts_.windows->closed();  // before looking: the last window may come after the look
    const std::vector<SharedWindow> windows =
        parts_.windows->After(last, more_to_do ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(kWait));
    if (windows.empty() && closed) break;
    for (const SharedWindow& window : windows) {
      for (uint64_t missed = last + 1; missed < window->number; ++missed) {
        parts_.metrics->CountWindow(WindowResult::kFailed);
        Say("missed", WithHint(absl::ResourceExhaustedError("a window went by before the one before was written"),
                               "the disk of the history is slow: --history on another one, or a longer --window"));
      }
      last = window->number;
      Keep(window);
    }
    if (parts_.history == nullptr || (windows.empty() && !more_to_do)) continue;
    if (!windows.empty()) now_unix_ns = windows.back()->end_unix_ns;
    // The clock of the windows decides: the history has seen it, and knows when not to believe it.
    const absl::StatusOr<bool> maintained = parts_.history->Maintain(now_unix_ns);
    more_to_do = maintained.ok() && *maintained;
    if (!maintained.ok()) Say("maintain", maintained.status());
    parts_.metrics->SetStoreBytes(SizeOfFile(parts_.history_path) + SizeOfFile(parts_.history_path + "-wal"));
  }
  if (parts_.flights != nullptr) {
    if (const absl::Status written = parts_.flights->Finish(); !written.ok()) Say("flights", written);
    CountFlights();
  }
  if (!parts_.textfile_directory.empty()) RemoveTextfile(parts_.textfile_directory);
}

void WindowWriter::Keep(const SharedWindow& window) {
  parts_.metrics->Observe(*window);
  if (parts_.flights != nullptr) {
    if (const absl::Status written = parts_.flights->Observe(window); !written.ok()) Say("flights", written);
    CountFlights();
  }
  if (parts_.history != nullptr) {
    const absl::Status kept = parts_.history->Append(*window);
    parts_.metrics->CountWindow(kept.ok() ? WindowResult::kWritten : WindowResult::kFailed);
    if (!kept.ok()) Say("history", kept);
  }
  if (!parts_.textfile_directory.empty()) {
    const absl::Status written = WriteTextfile(parts_.textfile_directory, parts_.metrics->Text(/*own_process=*/false));
    if (!written.ok()) Say("textfile", written);
  }
}

void WindowWriter::CountFlights() {
  FlightCounters now = parts_.flights->counters();
  size_t fresh = 0;
  for (const auto& [trigger, count] : now.recorded) fresh += count - counted_flights_.recorded[trigger];
  const std::vector<FlightRecording> newest_first = parts_.flights->List();
  for (size_t i = 0; i < std::min(fresh, newest_first.size()); ++i) {
    const FlightRecording& recording = newest_first[i];
    parts_.log(absl::StrCat("flight recording ", recording.id, ": ", recording.trigger, " in process ",
                            recording.pid.value_or(0), " ", recording.comm, ", ", recording.value));
  }
  const auto count = [&](const std::map<std::string, uint64_t>& counts, std::map<std::string, uint64_t>& counted,
                         RecordingResult result) {
    for (const auto& [trigger, value] : counts) {
      for (uint64_t& known = counted[trigger]; known < value; ++known)
        parts_.metrics->CountRecording(KindOfTrigger(trigger), result);
    }
  };
  count(now.recorded, counted_flights_.recorded, RecordingResult::kKept);
  count(now.limited, counted_flights_.limited, RecordingResult::kLimited);
  count(now.failed, counted_flights_.failed, RecordingResult::kFailed);
}

void WindowWriter::Say(const std::string& kind, const absl::Status& error) {
  const uint64_t now_ns = SystemClock().Now().ns;
  uint64_t& said_ns = said_ns_[kind];
  if (said_ns != 0 && now_ns - said_ns < kSayAgainNs) return;
  said_ns = now_ns;
  parts_.log(absl::StrCat("error: ", error.message()));
  if (const std::string hint = HintOf(error); !hint.empty()) parts_.log(absl::StrCat("hint: ", hint));
}

}  // namespace clrsampler
