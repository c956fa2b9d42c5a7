// The account of a run as JSON, the file that --stats writes. docs/stats.md has every key.
#ifndef CLRSAMPLER_OUTPUT_STATS_JSON_H_
#define CLRSAMPLER_OUTPUT_STATS_JSON_H_

#include <string>

#include "profile/account.h"

namespace clrsampler {

std::string StatsJson(const Account& account);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_STATS_JSON_H_
