// The account of a run as JSON, the file that --stats writes. docs/stats.md has every key.
#ifndef CLRSAMPLER_OUTPUT_STATS_JSON_H_
#define CLRSAMPLER_OUTPUT_STATS_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "profile/account.h"

namespace clrsampler {

// `thread_pool`: what a recording of waits says of it, a sentence; empty: nothing.
std::string StatsJson(const Account& account, absl::string_view thread_pool = "");

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_STATS_JSON_H_
