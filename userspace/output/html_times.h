// The times of a profile's samples as the HTML page reads them: for each cell of the page (a stack of a thread), the
// steps of time in which it has weight. A cell's steps are near each other and so are those of cells that are about as
// busy. That makes them small: about a byte for each step of a cell.
//
// It is varints (7 bits a byte, the lowest first; all but the last byte have the eighth bit). They are: milliseconds of
// a step, the number of steps from the start of the recording to its last sample, the length of the columns of steps
// and weights. Three columns follow, one behind the other:
//   counts   of each cell, in the order of the cells: how many steps it is in
//   steps    cell by cell, those in most steps first (then in their order): by how much a step is behind the one
//            before; of a cell's first one its number
//   weights  in the same order: the weight of the cell in the step
#ifndef CLRSAMPLER_OUTPUT_HTML_TIMES_H_
#define CLRSAMPLER_OUTPUT_HTML_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

// Units of 20 ms: the steps that a page may have, and those of its lanes.
inline constexpr uint32_t kHtmlSteps[] = {1, 50, 100, 250, 500, 1500, 3000, 15000, 45000};
inline constexpr uint32_t kHtmlSecond[] = {50};

// `cell_of_row`: of each sample, less than `cells`. `steps`: lengths in units of 20 ms, the first one is taken with
// which it has at most `most_bytes`. Deflated (zlib), in base64; "": none has, or no sample has a time. Fails only for
// want of memory.
absl::StatusOr<std::string> PackHtmlTimes(const SampleColumns& samples, std::span<const uint32_t> cell_of_row,
                                          size_t cells, std::span<const uint32_t> steps, size_t most_bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_HTML_TIMES_H_
