#include "cli/diff_command.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/choice_option.h"
#include "output/diff_text.h"
#include "output/folded.h"
#include "output/html.h"
#include "profile/model_diff.h"
#include "status/status.h"

namespace clrsampler {

void DeclareDiffOptions(CLI::App& app, DiffConfig& config) {
  app.add_option("before", config.before, "profile in any format that is read")->required()->type_name("BEFORE");
  app.add_option("after", config.after, "the other one")->required()->type_name("AFTER");
  app.add_option(
         "--output,-o", config.output,
         "file for the difference: .html is a page, others folded text with two counts, as flamegraph.pl draws it")
      ->type_name("FILE");
  static constexpr Choice<DiffBasis> kBases[] = {{"share", DiffBasis::kShare}, {"cpu-time", DiffBasis::kCpuTime}};
  DeclareChoice(
      app, "--by", config.by, kBases,
      "share: of each profile's whole; cpu-time: in a second of recording, for programs that do the same work",
      "BASIS");
  app.add_option("--top", config.top, "rows of the table")->capture_default_str()->type_name("N");
  DeclareFilterOptions(app, config.filter);
}

absl::Status RunDiff(const DiffConfig& config) {
  ASSIGN_OR_RETURN(const ProfileFilter filter, ToFilter(config.filter));
  const WriterRow* row = WriterOfPath(config.output);
  const bool is_page = row != nullptr && row->format == "html";
  if (row != nullptr && !is_page && row->format != "folded") {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("a difference can't be written as ", row->format)),
                    "write a page or folded text: -o diff.html, -o diff.folded");
  }
  absl::StatusOr<ProfileModel> profiles[2];
  for (int i = 0; i < 2; ++i) {
    profiles[i] = ReadProfileFile(i == 0 ? config.before : config.after);
    if (profiles[i].ok()) profiles[i] = FilterProfile(*std::move(profiles[i]), filter);
    if (!profiles[i].ok()) return profiles[i].status();
  }
  ASSIGN_OR_RETURN(const ProfileDiff diff, DiffProfiles(*profiles[0], *profiles[1], config.by));
  if (!config.output.empty()) {
    ASSIGN_OR_RETURN(OutputFile opened, OutputFile::Open(config.output));
    const OutputSink sink = [&](absl::string_view text) { return opened.Write(text); };
    RETURN_IF_ERROR(is_page ? WriteHtmlDiff(*profiles[1], {*profiles[0], diff}, sink) : WriteFoldedDiff(diff, sink));
    RETURN_IF_ERROR(opened.Finish());
  }
  std::fputs(DiffText(diff, config.top).c_str(), config.output == "-" ? stderr : stdout);
  return absl::OkStatus();
}

}  // namespace clrsampler
