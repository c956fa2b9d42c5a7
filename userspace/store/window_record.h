// A window taken apart into what a record keeps, in the numbers of a chapter.
#ifndef CLRSAMPLER_STORE_WINDOW_RECORD_H_
#define CLRSAMPLER_STORE_WINDOW_RECORD_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "profile/window.h"
#include "store/chapter_builder.h"
#include "store/record.h"

namespace clrsampler {

struct WindowRecord {
  uint64_t begin_unix_ns = 0, end_unix_ns = 0;
  RecordAccount account;
  std::vector<ProcessTally> tallies;
  std::vector<RecordPause> pauses;
  std::vector<RecordMethod> methods;
  // By process; in the order of kStackParts.
  std::array<std::map<uint32_t, std::vector<StackRow>>, kStackParts.size()> rows;
};

// Adds to the chapter what it does not have. With the chapter's ok() false afterwards the record means nothing.
WindowRecord TakeApart(const Window& window, ChapterBuilder& chapter);

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_WINDOW_RECORD_H_
