#include "cli/ring_option.h"

#include <CLI/CLI.hpp>

#include "cli/size_option.h"

namespace clrsampler {

void DeclareRingBytes(CLI::App& app, std::optional<std::string>& text) {
  app.add_option("--ring-bytes", text,
                 "size of the buffer between kernel and agent, like 16MiB, and of the one for probes; "
                 "without it by the number of CPUs")
      ->type_name("SIZE");
}

absl::StatusOr<uint64_t> ParseRingBytes(const std::string& text) {
  // A record of a deep stack has up to 70 KiB; with less room than one page nothing at all would pass.
  return ParseSizeBytes("--ring-bytes", text, 4096, uint64_t{1} << 30,
                        "write it as 512KiB or 16MiB; from 4KiB to 1GiB");
}

}  // namespace clrsampler
