// How much text a writer gathers before it hands it on.
#ifndef CLRSAMPLER_OUTPUT_TEXT_CHUNK_H_
#define CLRSAMPLER_OUTPUT_TEXT_CHUNK_H_

#include <cstddef>

namespace clrsampler {

inline constexpr size_t kChunkBytes = 256 * 1024;

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_TEXT_CHUNK_H_
