// The terminal of `clrsampler top`: tables that refresh, keys that sort, filter and look into a process.
#ifndef CLRSAMPLER_CLI_TOP_SCREEN_H_
#define CLRSAMPLER_CLI_TOP_SCREEN_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "profile/top_table.h"

namespace clrsampler {

// The view that is shown; the keys change it.
struct TopView {
  TopSort sort = TopSort::kCpu;
  std::string filter;    // expression for names; empty: all
  bool methods = false;  // methods, of `pid` or of all
  NamelessLeaves nameless = NamelessLeaves::kByRole;
  std::optional<uint32_t> pid;
  bool paused = false;  // the table stands still
};

// A thread of its own draws and reads keys, so that a slow terminal never holds up sampling.
class TopScreen {
 public:
  // Takes the terminal of standard input and output. FAILED_PRECONDITION: it is none, or its kind is not known.
  static absl::StatusOr<std::unique_ptr<TopScreen>> Open(const TopView& view, uint64_t span_ns);
  ~TopScreen();  // gives the terminal back

  void Add(std::shared_ptr<const Window> window);

 private:
  class Terminal;
  TopScreen(const TopView& view, uint64_t span_ns);
  void Run();

  std::mutex mutex_;
  TopTable table_;     // guarded
  bool fresh_ = true;  // guarded: something came since it was drawn
  bool stop_ = false;  // guarded
  TopView view_;       // the thread's, as the terminal
  std::unique_ptr<Terminal> terminal_;
  std::thread thread_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_TOP_SCREEN_H_
