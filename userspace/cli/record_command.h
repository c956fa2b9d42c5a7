// `clrsampler [record]`: options, progress on standard error, folded stacks on standard output.
#ifndef CLRSAMPLER_CLI_RECORD_COMMAND_H_
#define CLRSAMPLER_CLI_RECORD_COMMAND_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "cli/record_config.h"

namespace clrsampler {

void DeclareRecordOptions(CLI::App& app, RecordConfig& config);

// The options of `clrsampler replay`.
void DeclareReplayOptions(CLI::App& app, RecordConfig& config);

// Records, or plays a saved stream.
absl::Status RunRecord(const RecordConfig& config);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_RECORD_COMMAND_H_
