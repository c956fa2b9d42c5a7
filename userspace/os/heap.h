// How the heap of the whole program takes memory from the kernel.
#ifndef CLRSAMPLER_OS_HEAP_H_
#define CLRSAMPLER_OS_HEAP_H_

#include <cstddef>

namespace clrsampler {

// Blocks from 1 MiB on are mappings of their own, and go back as soon as they are freed. glibc raises that size, to
// 32 MiB, whenever such a block is freed; tables that grow then leave holes behind. Measured with store_bench: the most
// that a question to the history of a large host takes is 47 MiB instead of 71, and a window 30 instead of 52. To be
// called first in main. Does nothing with another C library.
void ReturnLargeBlocks();

// The bytes of all blocks that are not freed. 0 with another C library than glibc 2.33 or newer.
size_t HeapBytesInUse();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_HEAP_H_
