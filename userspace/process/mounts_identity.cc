#include "process/mounts_identity.h"

#include "absl/strings/str_cat.h"

namespace clrsampler {

std::string MountsIdentity(const Process& process) {
  const TargetFiles& files = process.files;
  const auto root = files.RootIdentity();
  if (files.mount_namespace() == 0 || !root) {
    // A stream that does not say it was saved when everything was shared.
    if (files.tape() != nullptr && files.tape()->plays()) return "";
    return absl::StrCat("process ", process.key.tgid, ".", process.key.incarnation);
  }
  return absl::StrCat("mounts ", files.mount_namespace(), " ", root->first, ":", root->second);
}

}  // namespace clrsampler
