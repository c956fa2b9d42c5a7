#include "os/heap.h"

#include <malloc.h>

namespace clrsampler {

void ReturnLargeBlocks() {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

}  // namespace clrsampler
