// A History without a file: the questions of store/history.h, answered out of the windows that are in memory.
#ifndef CLRSAMPLER_EXPORT_RECENT_HISTORY_H_
#define CLRSAMPLER_EXPORT_RECENT_HISTORY_H_

#include <memory>

#include "export/recent_windows.h"
#include "store/history.h"

namespace clrsampler {

// `windows` is borrowed. Ranges are cut to the nanosecond in profiles, and to whole windows in the rest.
std::unique_ptr<History> MakeRecentHistory(RecentWindows& windows);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_RECENT_HISTORY_H_
