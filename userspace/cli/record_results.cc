#include "cli/record_results.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/output_name.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
absl::StatusOr<std::vector<ProfileOutput>> OpenOutputs(const RecordConfig& config, const std::vector<uint32_t>& pids,
                                                       std::string comm) {
  RecordingSubject subject;
  subject.pids = pids;
  subject.start = absl::Now();
  subject.comm = std::move(comm);
  std::vector<std::string> names;
  for (const std::string& pattern : config.outputs) {
    ASSIGN_OR_RETURN(std::string name, ExpandOutputName(pattern, subject));
    names.push_back(std::move(name));
  }
  if (names.empty()) names.emplace_back("-");
  std::vector<ProfileOutput> outputs;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(ProfileOutput output, OpenProfileOutput(name, config.format, config.build_tool));
    outputs.push_back(std::move(output));
  }
  RETURN_IF_ERROR(CheckBuildToolConfig(outputs, config.build_tool));
  const bool folded = std::any_of(outputs.begin(), outputs.end(),
                                  [](const ProfileOutput& one) { return one.writer->format == "folded"; });
  if (config.annotate_source && !folded) {
    return WithHint(absl::InvalidArgumentError("--annotate-source is for folded text, and none is written"),
                    "add -o NAME.folded, or leave --annotate-source out");
  }
  return outputs;
}

absl::StatusOr<std::optional<OutputFile>> OpenStats(const RecordConfig& config) {
  if (!config.stats.has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(OutputFile opened, OutputFile::Open(*config.stats));
  return opened;
}

absl::Status CheckDistinct(const std::vector<ProfileOutput>& outputs, std::vector<ResultFile> files) {
  for (const ProfileOutput& output : outputs) {
    if (output.file) files.push_back({output.file->name(), output.file->descriptor()});
  }
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!IsOneResult(files[i].descriptor, files[j].descriptor)) continue;
      return WithHint(absl::InvalidArgumentError(absl::StrCat("two results would go to ", files[i].name)),
                      "give each result a file of its own");
    }
  }
  return absl::OkStatus();
}

std::string WhatNext(const std::vector<ProfileOutput>& outputs) {
  const ProfileOutput* chosen = nullptr;
  for (const ProfileOutput& output : outputs) {
    if (output.file && output.file->is_standard_output()) continue;
    const bool is_picture = output.writer->format == "html" || output.writer->format == "svg";
    if (chosen == nullptr || is_picture) chosen = &output;
    if (is_picture) break;
  }
  if (chosen == nullptr) return "-o cpu.html gives a page that opens in any browser";
  return absl::StrReplaceAll(chosen->writer->next, {{"FILE", chosen->file ? chosen->name() : "each file"}});
}

std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

RunOrigin OriginHere(const RecordOptions& options) {
  RunOrigin origin;
  origin.host = HostName();
  origin.comm = !options.pids.empty()      ? CommOf(options.pids.front())
                : !options.command.empty() ? options.command[0].substr(options.command[0].rfind('/') + 1)
                                           : "host";
  origin.boot_unix_ns = static_cast<uint64_t>(absl::ToUnixNanos(absl::Now())) - SystemClock().Now().ns;
  return origin;
}

std::string CommOf(uint32_t pid) {
  const absl::StatusOr<std::string> comm = ReadWholeFile(absl::StrCat("/proc/", pid, "/comm"), 4096);
  return comm.ok() ? std::string(absl::StripAsciiWhitespace(*comm)) : "process";
}

}  // namespace clrsampler
