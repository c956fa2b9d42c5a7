// The profile as the HTML page reads it: JSON in columns. One sum for each (stack, thread), so that without times a
// page of a million samples is as small as one of a thousand with the same stacks.
//
//   version    1; output/page/src/profile_data.js reads exactly this one
//   about      title, view, unit, period_ns, start_unix_ns, duration_ns, recorded_ns (the duration without its gaps),
//   host,
//              command, creator
//   account, account_before   text of the JSON of docs/stats.md, or not there
//   strings    texts; the first is ""
//   frames     columns name, module, tier, source (of strings) and kind (number of a ModelFrameKind). Frames that
//   differ in
//              nothing but tier and source are one: "QuickJitted, OptimizedTier1"
//   nodes      columns up and frame: the parent of node i is node i - up[i], or the root if that is -1. With lines also
//              line, an index of them and one more, 0 where it is not known; a parent may have several nodes of one
//              frame
//   lines      only where a line is known, and not of a comparison: columns file (of strings), line, kind (number of a
//              LineKind)
//   sources    there where lines are: columns file and url (of strings), and text, the files' own texts or ""
//   threads    columns pid, tid, comm, name, container
//   cells      columns step, thread, weight: weight of the samples of a thread that end at a node. Step: by how much
//   the node
//              is behind that of the cell before, the first one behind -1. A comparison has a column before as well
//   times      only of a profile whose samples have times. The times themselves stand apart
//              (output/html_times.h). untimed: weight of the samples without a time. lanes: what the numbers of frames'
//              column "lane" mean, of a LaneCategory and one more; 0: the frame is what its caller is. events: columns
//              kind (number of a ModelEventKind), time_us (behind that of the event before), duration_us, thread, name
//              and detail (of strings; "" for methods that were compiled)
//   code       only of a recording that keeps machine code: output/html_code.h
//   diff       only of a comparison. scale: weights before are multiplied by it. all: samples of both profiles where
//              shares are compared, else 0. self, total, stack: standard errors from which on a change of a method's
//              own or total weight, or of a stack, counts; null: none does. tested, scatter_unknown: ProfileDiff
//              says. A comparison's frames have columns noise_self and noise_total as well, the dispersion of their
//              counts. profile/model_diff.h says how changes are judged
#ifndef CLRSAMPLER_OUTPUT_HTML_DATA_H_
#define CLRSAMPLER_OUTPUT_HTML_DATA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "formats/profile/profile_model.h"
#include "output/profile_writer.h"
#include "profile/model_diff.h"

namespace clrsampler {

// The profile that the drawn one is compared with; `diff` is of these two.
struct HtmlComparison {
  const ProfileModel& before;
  const ProfileDiff& diff;
};

// The cells of the page, for its times.
struct HtmlCells {
  std::vector<uint32_t> of_row;  // of each sample
  size_t count = 0;
  // The lanes of each cell: a number for each thread and kind of work, in the order in which the cells come to them.
  std::vector<uint32_t> lanes;
  size_t lane_count = 0;
};

// `comparison` may be null. Names that are not UTF-8 have U+FFFD where they are not. In a comparison, threads are the
// same if their processes and they have the same names.
// `cells` gets the cell of each sample, and stays empty where samples have no times; null: times are not wanted.
absl::Status WriteHtmlData(const ProfileModel& model, const HtmlComparison* comparison, const OutputSink& sink,
                           HtmlCells* cells = nullptr);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_HTML_DATA_H_
