// As whom an agent of root touches files.
//
// Root owns the files that make a host root's: without a capability left, uid 0 may still write /etc. So the agent
// opens files as a user that owns nothing but the agent's own folders: the effective one. Its real user stays root, so
// that no process of another user can end it.
#ifndef CLRSAMPLER_SANDBOX_FILE_USER_H_
#define CLRSAMPLER_SANDBOX_FILE_USER_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace clrsampler {

struct FileUser {
  uid_t uid;
  gid_t gid;
};

// The account `clrsampler`, which the package makes, else an id above those that systemd, containers and directory
// services give out.
FileUser AgentFileUser();

// Makes the folder where it is missing, and gives it with the files in it to the user, if it is one of the agent's own.
// Such a folder is just made, or the user's already, or of root and below /var/lib, /var/cache or /run with the agent's
// name. Any other folder is somebody's whose files are not ours to give away: FailedPrecondition.
absl::Status HandOver(const std::string& folder, FileUser user);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SANDBOX_FILE_USER_H_
