// The sources of names of a run, in the order in which they are asked.
#ifndef CLRSAMPLER_PIPELINE_SOURCE_ORDER_H_
#define CLRSAMPLER_PIPELINE_SOURCE_ORDER_H_

#include <memory>
#include <vector>

#include "formats/names/frame_text.h"
#include "os/clock.h"
#include "process/image_files.h"
#include "status/notices.h"
#include "symbols/frame_source.h"

namespace clrsampler {

// Borrows everything it is given; those outlive the sources.
struct SourceContext {
  FrameTable& frames;
  ImageFiles& images;
  Notices& notices;
  const Clock& clock;
  NameStyle names;
};

std::vector<std::unique_ptr<FrameSource>> MakeSources(const SourceContext& context);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_SOURCE_ORDER_H_
