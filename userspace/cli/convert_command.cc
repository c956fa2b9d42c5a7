#include "cli/convert_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "profile/model_merge.h"
#include "status/status.h"

namespace clrsampler {
namespace {

void DeclareCommonOptions(CLI::App& app, ConvertConfig& config) {
  app.add_option("--format", config.format, "format where no extension says it; without it folded")
      ->check(CLI::IsMember(FormatNames()))
      ->type_name("FORMAT");
  DeclareFilterOptions(app, config.filter);
  DeclareBuildToolOptions(app, config.build_tool);
}

}  // namespace

void DeclareConvertOptions(CLI::App& app, ConvertConfig& config) {
  app.add_option("input", config.input, "profile in any format that is read; - for standard input")
      ->required()
      ->type_name("IN");
  app.add_option("output,--output,-o", config.output, "file for the result; without it standard output")
      ->type_name("OUT");
  DeclareCommonOptions(app, config);
}

void DeclareMergeOptions(CLI::App& app, ConvertConfig& config) {
  app.add_option("inputs", config.inputs, "profiles in any formats that are read")->required()->type_name("IN...");
  app.add_option("--output,-o", config.output, "file for the result; without it standard output")->type_name("FILE");
  DeclareCommonOptions(app, config);
}

absl::Status RunConvert(const ConvertConfig& config) {
  ASSIGN_OR_RETURN(const ProfileFilter filter, ToFilter(config.filter));
  std::vector<ProfileModel> profiles;
  size_t rows = 0;
  bool had_code = false;
  for (const std::string& input : config.inputs.empty() ? std::vector{config.input} : config.inputs) {
    ASSIGN_OR_RETURN(ProfileModel profile, ReadProfileFile(input));
    profiles.push_back(std::move(profile));
    rows += profiles.back().samples.size();
    had_code |= !profiles.back().code.empty();
    if (rows > kReadLimits.samples) {
      return WithHint(absl::ResourceExhaustedError(
                          absl::StrCat("the profiles have more than ", kReadLimits.samples, " samples together")),
                      "merge fewer of them; folded text and .pb.gz count equal samples instead of listing them");
    }
  }
  const bool merged = profiles.size() > 1;
  absl::StatusOr<ProfileModel> model = profiles.size() == 1 ? std::move(profiles.front()) : MergeProfiles(profiles);
  if (!model.ok()) return model.status();
  model = ApplyFilter(*std::move(model), filter);
  if (!model.ok()) return model.status();
  ASSIGN_OR_RETURN(ProfileOutput output, OpenProfileOutput(config.output, config.format, config.build_tool));
  RETURN_IF_ERROR(CheckBuildToolConfig({&output, 1}, config.build_tool));
  if (had_code && model->code.empty()) RETURN_IF_ERROR(CheckLostCode(output, merged));
  RETURN_IF_ERROR(GiveUpRightsForCode(*model, {&output, 1}));
  return WriteProfile(*model, {}, config.build_tool, output);
}

}  // namespace clrsampler
