// Tells what threads wait for each other for, in sentences and as JSON.
#ifndef CLRSAMPLER_CLI_LOCK_WORDS_H_
#define CLRSAMPLER_CLI_LOCK_WORDS_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "pipeline/thread_stacks.h"

namespace clrsampler {

// "waits for the monitor of a Shop.Stock, which thread book keeper (4712) holds"; empty: the thread waits for no lock.
std::string LockSentence(const ThreadStacks& stacks, const ThreadStack& thread);

// For each circle a sentence and a line for each of its threads; empty: there is none. Names are made printable.
std::string DeadlockText(const ThreadStacks& stacks);

// Each thread that waits for a lock, with who holds it: a line each, of at most `rows` threads, below the deadlocks.
// Where no thread waits, a sentence says so. Where that is not known, one says why.
std::string HeldLocksText(const ThreadStacks& stacks, size_t rows);

// The same as an array: tid, comm, method, and what AddLockJson adds.
nlohmann::ordered_json HeldLocksJson(const ThreadStacks& stacks);

// Adds them as `held_at_end`, and as `held_at_end_trouble` why it may lack some.
void AddHeldLocks(const absl::StatusOr<ThreadStacks>& stacks, nlohmann::ordered_json& json);

// To standard error, a line each.
void SayNoticesOf(const ThreadStacks& stacks);

// Adds `waits_for` and `deadlock` to a thread's object.
void AddLockJson(const ThreadStacks& stacks, const ThreadStack& thread, nlohmann::ordered_json& json);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_LOCK_WORDS_H_
