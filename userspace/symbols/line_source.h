// A source of lines: what a FrameSource is for names.
#ifndef CLRSAMPLER_SYMBOLS_LINE_SOURCE_H_
#define CLRSAMPLER_SYMBOLS_LINE_SOURCE_H_

#include <optional>

#include "symbols/frame_source.h"
#include "symbols/source_place.h"

namespace clrsampler {

// Main loop only.
class LineSource {
 public:
  virtual ~LineSource() = default;

  // Frames of other kinds are not asked about.
  virtual bool HasLinesOf(FrameKind kind) const { return kind == FrameKind::kJit || kind == FrameKind::kR2r; }

  // The line of the code at `lookup_address` at that time. Asked after Resolve has named the frame, with the same
  // question. nullopt: it has none that is known.
  virtual std::optional<SourcePlace> PlaceOf(const FrameQuery& query) = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_LINE_SOURCE_H_
