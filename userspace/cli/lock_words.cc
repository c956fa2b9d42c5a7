#include "cli/lock_words.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "output/article.h"
#include "output/summary.h"

namespace clrsampler {
namespace {

const ThreadStack* Find(const ThreadStacks& stacks, uint32_t tid) {
  const auto found =
      std::find_if(stacks.threads.begin(), stacks.threads.end(), [tid](const ThreadStack& t) { return t.tid == tid; });
  return found == stacks.threads.end() ? nullptr : &*found;
}

// "book keeper (4712)"
std::string Thread(const ThreadStacks& stacks, uint32_t tid) {
  const ThreadStack* const thread = Find(stacks, tid);
  return thread == nullptr ? absl::StrCat(tid) : absl::StrCat(PrintableText(thread->comm), " (", tid, ")");
}

// "the monitor of a Shop.Stock"
std::string Lock(const ThreadLock& lock) {
  if (!lock.monitor) return "a System.Threading.Lock";
  return lock.type.empty() ? "a monitor" : absl::StrCat("the monitor of ", WithArticle(PrintableText(lock.type)));
}

// The cycle of waits that the thread is in. nullptr: it is in none.
const std::vector<uint32_t>* CycleOf(const ThreadStacks& stacks, uint32_t tid) {
  for (const std::vector<uint32_t>& cycle : stacks.deadlocks) {
    if (std::find(cycle.begin(), cycle.end(), tid) != cycle.end()) return &cycle;
  }
  return nullptr;
}

}  // namespace

std::string LockSentence(const ThreadStacks& stacks, const ThreadStack& thread) {
  if (!thread.lock) return "";
  const ThreadLock& lock = *thread.lock;
  if (!lock.known) return absl::StrCat("waits for ", Lock(lock), "; which one, and who holds it, is not known");
  std::string text = absl::StrCat(lock.limited ? "waits, with a time limit, for " : "waits for ", Lock(lock));
  if (lock.holder_tid != 0) {
    absl::StrAppend(&text, ", which thread ", Thread(stacks, lock.holder_tid), " holds");
    if (lock.entered > 1) absl::StrAppend(&text, " (entered ", lock.entered, " times)");
  } else {
    absl::StrAppend(&text,
                    lock.held ? ", which a thread holds that the runtime does not list" : ", which nobody holds now");
  }
  return text;
}

std::string HeldLocksText(const ThreadStacks& stacks, size_t rows) {
  std::string text = DeadlockText(stacks);
  size_t waiting = 0;
  for (const ThreadStack& thread : stacks.threads) {
    if (!thread.lock || CycleOf(stacks, thread.tid) != nullptr || ++waiting > rows) continue;
    const std::string method = PrintableText(thread.lock->method);
    absl::StrAppend(&text, "thread ", Thread(stacks, thread.tid), " ", LockSentence(stacks, thread),
                    method.empty() ? "" : absl::StrCat(", in ", method), "\n");
  }
  if (waiting > rows) absl::StrAppend(&text, waiting - rows, " more threads wait for locks\n");
  if (!stacks.locks_trouble.empty()) {
    absl::StrAppend(&text, "the holders of ", text.empty() ? "" : "other ",
                    "locks are not known: ", PrintableText(stacks.locks_trouble), "\n");
  }
  return text.empty() ? "no thread waits for a monitor or a System.Threading.Lock\n" : text;
}

void AddHeldLocks(const absl::StatusOr<ThreadStacks>& stacks, nlohmann::ordered_json& json) {
  json["held_at_end"] = stacks.ok() ? HeldLocksJson(*stacks) : nlohmann::ordered_json::array();
  const std::string trouble = stacks.ok() ? stacks->locks_trouble : std::string(stacks.status().message());
  if (!trouble.empty()) json["held_at_end_trouble"] = trouble;
}

void SayNoticesOf(const ThreadStacks& stacks) {
  for (const std::string& notice : stacks.notices) std::fprintf(stderr, "note: %s\n", PrintableText(notice).c_str());
}

nlohmann::ordered_json HeldLocksJson(const ThreadStacks& stacks) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ThreadStack& thread : stacks.threads) {
    if (!thread.lock) continue;
    nlohmann::ordered_json row = {{"tid", thread.tid}, {"comm", thread.comm}};
    if (!thread.lock->method.empty()) row["method"] = thread.lock->method;
    AddLockJson(stacks, thread, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string DeadlockText(const ThreadStacks& stacks) {
  std::string text;
  for (const std::vector<uint32_t>& cycle : stacks.deadlocks) {
    const std::string names =
        absl::StrJoin(cycle, ", ", [&](std::string* out, uint32_t tid) { absl::StrAppend(out, Thread(stacks, tid)); });
    absl::StrAppend(&text, "deadlock: the threads ", names, " wait for each other, and none of them will go on\n");
    for (size_t i = 0; i < cycle.size(); ++i) {
      const ThreadStack* const thread = Find(stacks, cycle[i]);
      if (thread == nullptr || !thread->lock) continue;
      absl::StrAppend(&text, "  ", Thread(stacks, cycle[i]), " ", LockSentence(stacks, *thread));
      const std::string method = PrintableText(thread->lock->method);
      absl::StrAppend(&text, method.empty() ? "" : absl::StrCat(", in ", method), "\n");
    }
  }
  return text;
}

void AddLockJson(const ThreadStacks& stacks, const ThreadStack& thread, nlohmann::ordered_json& json) {
  if (!thread.lock) return;
  const ThreadLock& lock = *thread.lock;
  nlohmann::ordered_json row = {{"lock", lock.monitor ? "monitor" : "System.Threading.Lock"}, {"known", lock.known}};
  if (lock.known) {
    if (!lock.type.empty()) row["type"] = lock.type;
    row["held"] = lock.held;
    if (lock.holder_tid != 0) row["holder"] = lock.holder_tid;
    if (lock.entered != 0) row["entered"] = lock.entered;
    if (lock.limited) row["limited"] = true;
  }
  json["waits_for"] = std::move(row);
  if (const std::vector<uint32_t>* const cycle = CycleOf(stacks, thread.tid)) json["deadlock"] = *cycle;
}

}  // namespace clrsampler
