// A file with a secret that the owner of the host named: a token, a private key.
#ifndef CLRSAMPLER_OS_SECRET_FILE_H_
#define CLRSAMPLER_OS_SECRET_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace clrsampler {

// The whole of it. PermissionDenied: others than its owner and its group may read it, or others than its owner may
// change it; then it is no secret, or anybody's.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, size_t max_bytes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_SECRET_FILE_H_
