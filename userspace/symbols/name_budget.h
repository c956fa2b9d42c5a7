// Bounds the memory that programs' names take: a new frame is on the account of the process that it is for.
#ifndef CLRSAMPLER_SYMBOLS_NAME_BUDGET_H_
#define CLRSAMPLER_SYMBOLS_NAME_BUDGET_H_

#include <cstddef>

#include "os/clock.h"
#include "process/per_process.h"
#include "process/process.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

// Main loop only. Borrows both; they outlive it.
class NameBudget {
 public:
  // `notices`: is told of processes with too many names; nullptr: nobody is.
  NameBudget(FrameTable& frames, Notices* notices) : frames_(frames), notices_(notices) {}

  // A program decides how many names it has, how long they are, and which of them are sampled. These bounds are of
  // FrameTable::bytes: what one process may take at once, and what it may add in a second. 30,000 functions of a .NET
  // program take some 20 MB. One that makes methods all the time meets some hundred new ones a second, of 0.7 KB each.
  static constexpr size_t kMaxNameBytes = 32 << 20;
  static constexpr size_t kNameBytesASecond = 128 << 10;
  // All processes together. The first half alone is for what is added in seconds, as a program may go on with that for
  // days. Beyond three quarters there is room for processes that have taken little.
  static constexpr size_t kMaxNameBytesOfAll = 256 << 20;
  static constexpr size_t kMostAddedInSeconds = kMaxNameBytesOfAll / 2;
  static constexpr size_t kMostOfLarge = kMaxNameBytesOfAll / 4 * 3;
  static constexpr size_t kLittle = 1 << 20;

  // While it lives, frames that are interned for the first time are on the account of `process`. Without a time there
  // is nothing to add for seconds. A charge inside another one counts for itself.
  class Charge {
   public:
    Charge(NameBudget& budget, const Process& process, MonotonicTime time = MonotonicTime::Min());
    ~Charge();
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;

   private:
    NameBudget& budget_;
    const Process& process_;
    FrameRoom room_;
    FrameRoom* const outer_;
  };

  // A frame was refused to a process within its own bound, as all together take too much. Only a table that begins anew
  // helps.
  bool full() const { return full_; }

 private:
  struct Account {
    size_t added = 0;     // since the program began
    size_t taken = 0;     // of these: more than it could add in the seconds since then
    MonotonicTime since;  // of samples; `taken` is as of then
  };
  size_t RoomOf(Account& account, MonotonicTime time) const;
  void NoteRefusal(const Process& process, const Account& account);

  FrameTable& frames_;
  Notices* const notices_;
  PerProcess<Account> accounts_;
  bool full_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NAME_BUDGET_H_
