#include "symbols/name_budget.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace clrsampler {

NameBudget::Charge::Charge(NameBudget& budget, const Process& process, MonotonicTime time)
    : budget_(budget),
      process_(process),
      room_{.left = budget.RoomOf(budget.accounts_.Of(process), time)},
      outer_(budget.frames_.SetRoom(&room_)) {}

NameBudget::Charge::~Charge() {
  budget_.frames_.SetRoom(outer_);
  Account& account = budget_.accounts_.Of(process_);
  account.added += room_.used;
  account.taken += room_.used;
  if (room_.refused) budget_.NoteRefusal(process_, account);
}

size_t NameBudget::RoomOf(Account& account, MonotonicTime time) const {
  main_loop_.Check();
  if (time > account.since) {
    const uint64_t more = (time.ns - account.since.ns) / kMillisecondNs * kNameBytesASecond / 1000;
    if (more > 0) {
      account.taken -= std::min<size_t>(account.taken, more);
      account.since = time;
    }
  }
  const size_t all = frames_.bytes();
  if (all >= kMaxNameBytesOfAll) return 0;
  const size_t bound = all < kMostOfLarge ? kMaxNameBytes : kLittle;
  const size_t counted = all < kMostAddedInSeconds ? account.taken : account.added;
  return bound - std::min(bound, counted);
}

void NameBudget::NoteRefusal(const Process& process, const Account& account) {
  const bool by_others = account.taken < kMaxNameBytes;
  full_ |= by_others;
  if (notices_ == nullptr) return;
  const uint32_t pid = process.key.tgid;
  notices_->Add("names_left_out", absl::StrCat(pid),
                absl::StrCat("not all functions of process ", pid, " are named: the names of ",
                             by_others ? "all processes" : "this one process", " take ",
                             (by_others ? frames_.bytes() : kMaxNameBytes) >> 20,
                             " MiB; those that were met before keep their names"),
                "is it a program that means harm? --pid samples the others alone");
}

}  // namespace clrsampler
