// /proc/PID/mountinfo (Documentation/filesystems/proc.rst 3.5; fs/proc_namespace.c).
#ifndef CLRSAMPLER_FORMATS_PROC_MOUNTINFO_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_MOUNTINFO_TEXT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace clrsampler {

// The options of the file system that is mounted under this id, separated by commas; nullopt: the text has no such
// mount. Pure.
std::optional<absl::string_view> FileSystemOptionsOf(absl::string_view mountinfo, uint64_t mount_id);

// The line "mnt_id:" of /proc/PID/fdinfo/FD. Pure.
std::optional<uint64_t> MountIdOfDescriptor(absl::string_view fdinfo);

// The value of one of such options, "on" in "rw,metacopy=on"; nullopt: it is not among them. Pure.
std::optional<absl::string_view> OptionValue(absl::string_view options, absl::string_view name);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_MOUNTINFO_TEXT_H_
