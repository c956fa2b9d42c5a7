#include "cli/top_screen.h"

#include <re2/re2.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "output/top_text.h"
#include "status/status.h"

// This header comes last, and without its macros: they have the names of half the standard library.
#define NCURSES_NOMACROS 1
#include <ncurses.h>

namespace clrsampler {
namespace {

constexpr int kKeyWaitMs = 200;  // also how soon a new table is drawn
constexpr char kHelp[] =
    "q quit   up/down choose   Enter methods of a process   m methods of all   Esc back   s sort   / filter   a "
    "addresses   "
    "space stand still";

bool Fits(const RE2* filter, const std::string& text) { return filter == nullptr || RE2::PartialMatch(text, *filter); }

}  // namespace

// One screen: the choice and what scrolls belong to it.
class TopScreen::Terminal {
 public:
  // `screen` is what newterm gave.
  Terminal(SCREEN* screen, TopView& view) : view_(view), screen_(screen) {
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    timeout(kKeyWaitMs);
    Compile();
  }
  ~Terminal() {
    endwin();
    delscreen(screen_);
  }

  void Draw(const TopTable& table) {
    FollowSize();
    erase();
    const size_t width = static_cast<size_t>(COLS);
    attron(A_BOLD);
    mvaddstr(0, 0, FitWidth(Title(), width, false).c_str());
    attroff(A_BOLD);
    mvaddstr(1, 0, FitWidth(TopStateLine(table), width, false).c_str());
    std::vector<std::string> lines;
    if (view_.methods) {
      const TopMethods methods = table.Methods(view_.pid, view_.nameless);
      for (const MethodWeight& method : methods.methods) {
        if (Fits(filter_.get(), method.name))
          lines.push_back(TopMethodLine(method, table.seconds(), methods.total_ns, width));
      }
    } else {
      pids_.clear();
      for (const TopProcess& process : table.Processes(view_.sort)) {
        if (!Fits(filter_.get(), absl::StrCat(process.comm, " ", process.container))) continue;
        pids_.push_back(process.pid);
        lines.push_back(TopProcessLine(process, width));
      }
    }
    attron(A_REVERSE);
    mvaddstr(2, 0,
             FitWidth(view_.methods ? TopMethodHeader(width) : TopProcessHeader(width), width, /*pad=*/true).c_str());
    attroff(A_REVERSE);
    const int room = std::max(LINES - 4, 1);
    chosen_ = std::clamp(chosen_, 0, std::max(static_cast<int>(lines.size()) - 1, 0));
    top_ = std::clamp(top_, std::max(chosen_ - room + 1, 0), chosen_);
    if (lines.empty()) mvaddstr(4, 2, view_.filter.empty() ? "no samples yet" : "nothing fits the filter");
    for (int row = 0; row < room && top_ + row < static_cast<int>(lines.size()); ++row) {
      const bool chosen = top_ + row == chosen_;
      if (chosen) attron(A_STANDOUT);
      mvaddstr(3 + row, 0, FitWidth(lines[static_cast<size_t>(top_ + row)], width, chosen).c_str());
      if (chosen) attroff(A_STANDOUT);
    }
    mvaddstr(LINES - 1, 0, FitWidth(editing_ ? absl::StrCat("filter: ", edited_, "_") : kHelp, width, false).c_str());
    refresh();
  }

  // False: the user wants to leave. `changed` says whether there is something to draw.
  bool ReadKey(bool& changed) {
    const int key = getch();
    changed = key != ERR;
    if (key == ERR) return true;
    if (editing_) {
      Edit(key);
      return true;
    }
    if (Move(key)) return true;
    switch (key) {
      case 'q':
      case 3:  // Ctrl-C of a terminal that sends it as a key
        return false;
      case '\n':
      case KEY_ENTER:
        if (view_.methods || chosen_ < 0 || static_cast<size_t>(chosen_) >= pids_.size()) break;
        view_.pid = pids_[static_cast<size_t>(chosen_)];
        Enter(true);
        break;
      case 'm':
        view_.pid.reset();
        Enter(true);
        break;
      case 27:
      case KEY_BACKSPACE:
      case 'p':
        Enter(false);
        break;
      case 'a':
        view_.nameless =
            view_.nameless == NamelessLeaves::kByRole ? NamelessLeaves::kByAddress : NamelessLeaves::kByRole;
        break;
      case 's':
        view_.sort = static_cast<TopSort>((static_cast<int>(view_.sort) + 1) % kTopSortCount);
        break;
      case '/':
        editing_ = true;
        edited_ = view_.filter;
        break;
      case ' ':
        view_.paused = !view_.paused;
        break;
      default:
        break;
    }
    return true;
  }

 private:
  // True: a key that chooses another row.
  bool Move(int key) {
    switch (key) {
      case KEY_UP:
      case 'k':
        --chosen_;
        return true;
      case KEY_DOWN:
      case 'j':
        ++chosen_;
        return true;
      case KEY_PPAGE:
        chosen_ -= LINES - 4;
        return true;
      case KEY_NPAGE:
        chosen_ += LINES - 4;
        return true;
      case KEY_HOME:
        chosen_ = 0;
        return true;
      default:
        return false;
    }
  }

  std::string Title() const {
    std::string title = view_.paused ? "clrsampler top (stands still)" : "clrsampler top";
    if (view_.methods) {
      absl::StrAppend(&title, view_.pid ? absl::StrCat("  methods of process ", *view_.pid) : "  methods of all");
    } else {
      absl::StrAppend(&title, "  by ", TopSortText(view_.sort));
    }
    if (!view_.filter.empty()) absl::StrAppend(&title, "  filter ", view_.filter);
    if (bad_filter_) absl::StrAppend(&title, " (no valid expression)");
    return title;
  }

  void Enter(bool methods) {
    view_.methods = methods;
    chosen_ = top_ = 0;
  }

  void Edit(int key) {
    if (key == '\n' || key == KEY_ENTER || key == 27) {
      editing_ = false;
      if (key == 27) return;
      view_.filter = edited_;
      Compile();
    } else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
      if (!edited_.empty()) edited_.pop_back();
    } else if (key >= 32 && key < 256 && edited_.size() < 200) {
      edited_ += static_cast<char>(key);
    }
  }

  void Compile() {
    filter_.reset();
    bad_filter_ = false;
    if (view_.filter.empty()) return;
    RE2::Options options;
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    auto filter = std::make_unique<RE2>(view_.filter, options);
    bad_filter_ = !filter->ok();
    if (filter->ok()) filter_ = std::move(filter);
  }

  // Signals are blocked on this thread, also the one of a new size.
  static void FollowSize() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return;
    if (size.ws_row != LINES || size.ws_col != COLS) resizeterm(size.ws_row, size.ws_col);
  }

  TopView& view_;
  SCREEN* screen_;
  std::unique_ptr<RE2> filter_;
  bool bad_filter_ = false;
  bool editing_ = false;
  std::string edited_;
  int chosen_ = 0, top_ = 0;
  std::vector<uint32_t> pids_;  // of the rows
};

TopScreen::TopScreen(const TopView& view, uint64_t span_ns) : table_(span_ns), view_(view) {}

absl::StatusOr<std::unique_ptr<TopScreen>> TopScreen::Open(const TopView& view, uint64_t span_ns) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) {
    return WithHint(absl::FailedPreconditionError("top needs a terminal"), "clrsampler top --once prints one table");
  }
  setlocale(LC_CTYPE, "");
  SCREEN* terminal = newterm(nullptr, stdout, stdin);
  if (terminal == nullptr) {
    const char* kind = getenv("TERM");
    return WithHint(absl::FailedPreconditionError(
                        absl::StrCat("the kind of this terminal, '", kind == nullptr ? "" : kind, "', is not known")),
                    "TERM=xterm clrsampler top, or clrsampler top --once");
  }
  auto screen = std::unique_ptr<TopScreen>(new TopScreen(view, span_ns));
  screen->terminal_ = std::make_unique<Terminal>(terminal, screen->view_);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the main loop's
  screen->thread_ = std::thread([raw = screen.get()] { raw->Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return screen;
}

TopScreen::~TopScreen() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void TopScreen::Add(std::shared_ptr<const Window> window) {
  const std::lock_guard lock(mutex_);
  table_.Add(std::move(window));
  fresh_ = true;
}

void TopScreen::Run() {
  // A copy: drawing needs no lock.
  TopTable shown = [&] {
    const std::lock_guard lock(mutex_);
    return table_;
  }();
  bool changed = true;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      if (!view_.paused && std::exchange(fresh_, false)) {
        shown = table_;
        changed = true;
      }
    }
    if (changed) terminal_->Draw(shown);
    if (!terminal_->ReadKey(changed)) {
      kill(getpid(), SIGINT);  // the main loop ends as it does on Ctrl-C
      const std::lock_guard lock(mutex_);
      view_.paused = true;
      if (stop_) return;
    }
  }
}

}  // namespace clrsampler
