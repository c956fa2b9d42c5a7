// The account of a run as JSON, the file that --stats writes. docs/stats.md has every key.
#ifndef CLRSAMPLER_OUTPUT_STATS_JSON_H_
#define CLRSAMPLER_OUTPUT_STATS_JSON_H_

#include <optional>
#include <string>

#include "output/pool_summary.h"
#include "profile/account.h"

namespace clrsampler {

// The words of a recording of wall time about the thread pool.
struct PoolAccount {
  std::string verdict;                 // a sentence; empty: none
  std::optional<PoolNumbers> numbers;  // of the pool's own fields
};
inline constexpr char kPoolNumbersKey[] = "thread_pool_numbers";

std::string StatsJson(const Account& account, const PoolAccount& pool = {});

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_STATS_JSON_H_
