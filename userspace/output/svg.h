// The SVG output: a flame graph as a still picture, for documents and chats. No script, no style from elsewhere; names
// and numbers are in titles, which viewers show under the pointer.
//
// Root at the bottom, widest frames first, colours by kind as in the HTML page. Frames that would be too narrow, too
// many or too deep are left out, and the picture says so. It has at most kMostSvgFrames boxes and kMostSvgRows rows.
#ifndef CLRSAMPLER_OUTPUT_SVG_H_
#define CLRSAMPLER_OUTPUT_SVG_H_

#include "output/profile_writer.h"

namespace clrsampler {

inline constexpr size_t kMostSvgFrames = 20'000;
inline constexpr uint32_t kMostSvgRows = 400;

class SvgWriter : public ProfileWriter {
 public:
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_SVG_H_
