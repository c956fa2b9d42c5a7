// The IL map of a compiled method, out of the memory of its process.
#ifndef CLRSAMPLER_CLR_MEMORY_IL_MAP_READER_H_
#define CLRSAMPLER_CLR_MEMORY_IL_MAP_READER_H_

#include "absl/status/statusor.h"
#include "clr/memory/code_ranges.h"
#include "formats/runtime/il_map.h"
#include "formats/runtime/il_map_decoder.h"
#include "process/target_memory.h"

namespace clrsampler {

// `code` is what was found of the method. Reads twice, and two times more at most
// where other information lies before the map. NotFound: the method has none. Unavailable: its memory can't be read.
// DataLoss: what is there is no map of this code.
absl::StatusOr<IlMap> ReadIlMap(MemoryReader& memory, DebugInfoFormat format, const MethodCode& code);

// Whether the method can be replaced while it runs. Reads once or twice. Errors are those of ReadIlMap.
absl::StatusOr<bool> HasPatchpoint(MemoryReader& memory, DebugInfoFormat format, const MethodCode& code);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_IL_MAP_READER_H_
