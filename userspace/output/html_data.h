// The profile as the HTML page reads it: JSON in columns. One sum for each (stack, thread), no times, so a page of a
// million samples is as small as one of a thousand with the same stacks.
//
//   version    1; output/page/src/profile_data.js reads exactly this one
//   about      title, view, unit, period_ns, start_unix_ns, duration_ns, host, command, creator
//   account, account_before   text of the JSON of docs/stats.md, or not there
//   strings    texts; the first is ""
//   frames     columns name, module, tier, source (of strings) and kind (number of a ModelFrameKind). Frames that
//   differ in
//              nothing but tier and source are one: "QuickJitted, OptimizedTier1"
//   nodes      columns up and frame: the parent of node i is node i - up[i], or the root if that is -1
//   threads    columns pid, tid, comm, name, container
//   cells      columns step, thread, weight: weight of the samples of a thread that end at a node. Step: by how much
//   the node
//              is behind that of the cell before, the first one behind -1. A comparison has a column before as well
//   diff       only of a comparison: scale, unit, dispersion, critical
#ifndef CLRSAMPLER_OUTPUT_HTML_DATA_H_
#define CLRSAMPLER_OUTPUT_HTML_DATA_H_

#include "absl/status/status.h"
#include "formats/profile/profile_model.h"
#include "output/profile_writer.h"

namespace clrsampler {

// What the drawn profile is compared with, and when the difference of two weights counts: if after - scale * before is
// at least `critical` standard errors, where weights are sums of samples of weight `sample_weight` whose number varies
// by `dispersion` times itself.
struct HtmlComparison {
  const ProfileModel& before;
  double scale = 1;
  double sample_weight = 1;
  double dispersion = 1;
  double critical = 3;
};

// `comparison` may be null. Names that are not UTF-8 have U+FFFD where they are not. In a comparison, threads are the
// same if their processes and they have the same names.
absl::Status WriteHtmlData(const ProfileModel& model, const HtmlComparison* comparison, const OutputSink& sink);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_HTML_DATA_H_
