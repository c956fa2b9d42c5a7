// A file that a command reads, as a mapping.
#ifndef CLRSAMPLER_CLI_INPUT_FILE_H_
#define CLRSAMPLER_CLI_INPUT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "os/mapped_file.h"

namespace clrsampler {

// Errors name the path.
absl::StatusOr<MappedFile> MapInputFile(const std::string& path);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_INPUT_FILE_H_
