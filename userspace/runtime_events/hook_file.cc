#include "runtime_events/hook_file.h"

#include <cstdint>
#include <utility>

#include "status/status.h"

namespace clrsampler {

absl::StatusOr<std::shared_ptr<const OpenedFile>> OpenToHook(const Process& process, const Mapping& mapping,
                                                             const ImageFile& image) {
  if (image.content.damaged()) return absl::DataLossError("the file was changed while it was read");
  ASSIGN_OR_RETURN(OpenedFile opened, process.files.OpenMapping(mapping));
  if (opened.may_wait) return absl::FailedPreconditionError("it lies on a network or user-space file system");
  if (opened.status.st_dev != image.device || opened.status.st_ino != image.inode ||
      static_cast<uint64_t>(opened.status.st_size) != image.size) {
    return absl::FailedPreconditionError("the file was replaced while it was read");
  }
  return std::make_shared<const OpenedFile>(std::move(opened));
}

}  // namespace clrsampler
