// Takes windows as they come and keeps them: counts them for metrics, shows them to the flight recorder, writes them to
// the history, and gives the history time to roll up and forget.
#ifndef CLRSAMPLER_SERVE_WINDOW_WRITER_H_
#define CLRSAMPLER_SERVE_WINDOW_WRITER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "export/metrics.h"
#include "export/recent_windows.h"
#include "serve/flight_recorder.h"
#include "store/history.h"

namespace clrsampler {

// As metrics call it: the text before its sign.
std::string KindOfTrigger(const std::string& trigger);

struct WindowWriterParts {
  RecentWindows* windows = nullptr;
  Metrics* metrics = nullptr;
  FlightRecorder* flights = nullptr;  // may be none
  History* history = nullptr;         // may be none
  std::string history_path;
  std::string textfile_directory;  // empty: none
  std::function<void(const std::string&)> log;
};

// A thread of its own: a disk that is slow, or full, must not hold up sampling. Windows that went by while it was busy
// are counted as failed.
class WindowWriter {
 public:
  explicit WindowWriter(WindowWriterParts parts);
  // After RecentWindows::Close: returns when all that came has been kept.
  ~WindowWriter();

 private:
  void Run();
  void Keep(const SharedWindow& window);
  void CountFlights();
  void Say(const std::string& kind, const absl::Status& error);

  const WindowWriterParts parts_;
  FlightCounters counted_flights_;
  // Errors that go on are said once a minute.
  std::map<std::string, uint64_t> said_ns_;
  std::thread thread_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SERVE_WINDOW_WRITER_H_
