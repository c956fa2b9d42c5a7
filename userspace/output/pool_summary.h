// The work of the workers of a .NET process's thread pool, and whether the pool is starved: all of them wait for
// something that other work must bring.
#ifndef CLRSAMPLER_OUTPUT_POOL_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_POOL_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "os/clock.h"
#include "profile/sample_log.h"
#include "profile/stack_table.h"
#include "symbols/frame.h"

namespace clrsampler {

// Where workers wait, that are blocked nearly all the time.
struct BlockedWorkers {
  std::string kind;
  std::string method;  // of the program, that waits
  size_t workers = 0;
};

// The values of the pool's own fields, at the end of the recording.
struct PoolNumbers {
  uint32_t min_workers = 0, max_workers = 0;
  uint32_t workers = 0;
  std::optional<uint64_t> queued;  // work items that nobody has begun: the least of all readings; nullopt: not known
  // Workers with work, and how many the pool lets work: of the reading where it would have let most others work, too.
  std::optional<uint32_t> working = std::nullopt, wanted = std::nullopt;

  // At all readings work was left lying that idle workers were not to begin.
  bool leaves_work_to_none() const {
    return queued.value_or(0) > 0 && working && wanted && *wanted > 0 && *working >= *wanted;
  }
};

enum class PoolVerdict : uint8_t {
  kNotStarved,
  kStarved,
  kNotKnown,   // the pool's own numbers would tell
  kSeveral,    // several processes have workers, and each has a pool of its own
  kNoThreads,  // the profile does not say which thread did what
};

struct PoolSummary {
  size_t processes = 0;  // that have workers
  size_t workers = 0;    // threads that were seen below the pool's own start
  size_t running = 0;    // of these: ran for the larger part of what is known of them, or in short turns
  size_t idle = 0;       // waited for work for the larger part
  size_t blocked = 0;    // waited for something else for nine tenths, idleness before their first work left out
  size_t held = 0;       // of the blocked ones: never were idle after they had begun to work
  size_t came = 0;       // were first seen when the recording had gone on for half a second
  PoolVerdict verdict = PoolVerdict::kNotStarved;
  std::optional<PoolNumbers> numbers;  // nullopt: they could not be read
  std::vector<BlockedWorkers> sites;   // most workers first

  bool starved() const { return verdict == PoolVerdict::kStarved; }
};

// Takes a recording of wall time that has each sample with its thread.
PoolSummary SummarizePool(const FrameTable& frames, const StackTable& stacks, const SampleLog& samples,
                          MonotonicTime began, const std::optional<PoolNumbers>& numbers = std::nullopt);

// A verdict of one sentence, and a table of the sites. Each line ends in a newline; names are made printable.
std::string PoolSummaryText(const PoolSummary& summary, double seconds, size_t rows);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_POOL_SUMMARY_H_
