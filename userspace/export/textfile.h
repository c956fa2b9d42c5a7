// Metrics as a file for node_exporter's textfile collector, on hosts where nothing of ours shall listen.
#ifndef CLRSAMPLER_EXPORT_TEXTFILE_H_
#define CLRSAMPLER_EXPORT_TEXTFILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// FOLDER/clrsampler.prom, at once and as a whole: written beside it, synchronised and renamed, so that nobody ever
// reads a part. Mode 0644.
absl::Status WriteTextfile(const std::string& folder, absl::string_view text);
// At the end of the service: numbers that nobody writes any more would look like those of now.
void RemoveTextfile(const std::string& folder);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_TEXTFILE_H_
