// The options that commands which read or write profiles have in common: filters, files and their formats.
#ifndef CLRSAMPLER_CLI_PROFILE_OPTIONS_H_
#define CLRSAMPLER_CLI_PROFILE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/output_file.h"
#include "formats/profile/profile_model.h"
#include "output/profile_writer.h"
#include "profile/model_filter.h"

namespace clrsampler {

// As given on the command line.
struct FilterConfig {
  std::optional<std::string> focus, ignore, thread, from, to;
  bool no_kernel = false;
  bool fold_recursion = false;
};
void DeclareFilterOptions(CLI::App& app, FilterConfig& config);
absl::StatusOr<ProfileFilter> ToFilter(const FilterConfig& config);
// FilterProfile, with a note on standard error where it leaves nothing of something.
absl::StatusOr<ProfileModel> ApplyFilter(ProfileModel model, const ProfileFilter& filter);

std::vector<std::string> FormatNames();

// Options of formats that compilers and linkers read.
struct BuildToolConfig {
  std::string module;
  FunctionOrder order = FunctionOrder::kHot;
};
void DeclareBuildToolOptions(CLI::App& app, BuildToolConfig& config);

// A place for a result, opened before the work begins, and the writer for it.
struct ProfileOutput {
  std::optional<OutputFile> file;  // nullopt: a file for each image, `path` with %m in it
  std::string path;
  const WriterRow* writer;

  std::string name() const { return file ? file->name() : path; }
};
// The format is that of the path's extension; where that says none, `format`; where that is empty, folded.
// InvalidArgument also: %m in the name of a format that is not of one image, or together with a module.
absl::StatusOr<ProfileOutput> OpenProfileOutput(const std::string& path, absl::string_view format,
                                                const BuildToolConfig& build_tool);

// InvalidArgument: an option that means nothing to any of the outputs.
absl::Status CheckBuildToolConfig(std::span<const ProfileOutput> outputs, const BuildToolConfig& build_tool);

struct ProfileWriting {
  bool annotate_source = false;
  bool quiet = false;  // no notes on standard error
};
// Writes all of it and closes the file, or writes all files.
absl::Status WriteProfile(const ProfileModel& model, const ProfileWriting& writing, const BuildToolConfig& build_tool,
                          ProfileOutput& output);

// To be called before a profile with machine code is written, by a process that does nothing else any more: what reads
// instructions out of the code of a target may be broken by it. Without effect on other profiles.
// Where a page is among the `outputs` and instructions have no text, standard error says why.
absl::Status GiveUpRightsForCode(const ProfileModel& model, std::span<const ProfileOutput> outputs);

// The counts of machine code are those of a whole recording.
absl::Status CodeIsOfTheWhole();
// To be called where a profile lost its machine code on the way: it was filtered, or `merged`. An error, if the output
// is nothing without it. Standard error says so where the format would have kept it.
absl::Status CheckLostCode(const ProfileOutput& output, bool merged);

// The status and its hint as a note on standard error.
void SayNote(const absl::Status& status);

enum class ProfileSource : uint8_t {
  kAny,          // a pipe too; "-" is standard input
  kRegularFile,  // anything else is an error, and is never waited for
};
// Errors name the file.
absl::StatusOr<ProfileModel> ReadProfileFile(const std::string& path, ProfileSource source = ProfileSource::kAny);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_PROFILE_OPTIONS_H_
