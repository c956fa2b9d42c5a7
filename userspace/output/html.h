// The HTML output: one file that shows a profile as an interactive flame graph, with everything in it and nothing from
// elsewhere. The page itself is output/page (JavaScript, bundled by tools/build_page into page.html, which is part of
// the program); here the profile is put into it. docs/flame-graph.md shows what it does.
//
// The profile is in an inert element as base64, so no name in it can be markup, and the page's policy (a hash of its
// one script) allows no other script whatever the profile holds.
#ifndef CLRSAMPLER_OUTPUT_HTML_H_
#define CLRSAMPLER_OUTPUT_HTML_H_

#include "output/html_data.h"
#include "output/profile_writer.h"

namespace clrsampler {

class HtmlWriter : public ProfileWriter {
 public:
  absl::Status Write(const ProfileModel& model, const OutputSink& sink) const override;
};

// The page with two profiles: `after` is drawn, coloured by how it differs from the one before.
absl::Status WriteHtmlDiff(const ProfileModel& after, const HtmlComparison& comparison, const OutputSink& sink);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_HTML_H_
