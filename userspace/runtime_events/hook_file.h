// Opens the files that probes are planted in.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_FILE_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_FILE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "process/image_files.h"
#include "process/mappings.h"
#include "process/process.h"
#include "process/target_files.h"

namespace clrsampler {

// The very file that `image` was read from, as the process maps it. FAILED_PRECONDITION: it is another one by now, or
// the kernel would have to wait for a network or for a program when it reads the page of a probe. DATA_LOSS: it was
// changed while it was read.
absl::StatusOr<std::shared_ptr<const OpenedFile>> OpenToHook(const Process& process, const Mapping& mapping,
                                                             const ImageFile& image);

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_FILE_H_
