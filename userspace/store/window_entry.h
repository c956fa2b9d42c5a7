// A window taken apart into what an entry keeps, in the numbers of a segment.
#ifndef CLRSAMPLER_STORE_WINDOW_ENTRY_H_
#define CLRSAMPLER_STORE_WINDOW_ENTRY_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "profile/window.h"
#include "store/entry.h"
#include "store/segment_builder.h"

namespace clrsampler {

struct WindowEntry {
  uint64_t begin_unix_ns = 0, end_unix_ns = 0;
  EntryAccount account;
  std::vector<ProcessTally> tallies;
  std::vector<EntryPause> pauses;
  std::vector<EntryMethod> methods;
  // By process; in the order of kStackParts.
  std::array<std::map<uint32_t, std::vector<StackRow>>, kStackParts.size()> rows;
};

// Adds to the segment what it does not have. With the segment's ok() false afterwards the entry means nothing.
WindowEntry TakeApart(const Window& window, SegmentBuilder& segment);

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_WINDOW_ENTRY_H_
