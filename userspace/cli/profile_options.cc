#include "cli/profile_options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/choice_option.h"
#include "cli/duration_option.h"
#include "cli/output_name.h"
#include "disassembly/disassembler.h"
#include "formats/profile/profile_reader.h"
#include "os/file_io.h"
#include "output/image_functions.h"
#include "output/summary.h"
#include "sandbox/sandbox.h"
#include "status/status.h"

namespace clrsampler {

void DeclareFilterOptions(CLI::App& app, FilterConfig& config) {
  app.add_option("--focus", config.focus, "keep stacks with a frame that this regular expression matches")
      ->type_name("RE");
  app.add_option("--ignore", config.ignore, "drop stacks with such a frame")->type_name("RE");
  app.add_option("--thread", config.thread, "keep samples of this thread id, or of threads with such a name")
      ->type_name("TID|RE");
  app.add_option("--from", config.from, "drop samples before this time of the recording, like 10s")->type_name("TIME");
  app.add_option("--to", config.to, "drop samples from this time on")->type_name("TIME");
  app.add_flag("--no-kernel", config.no_kernel, "leave frames of the kernel out of stacks");
  app.add_flag("--fold-recursion", config.fold_recursion, "frames that call themselves become one");
}

absl::StatusOr<ProfileFilter> ToFilter(const FilterConfig& config) {
  ProfileFilter filter;
  filter.focus = config.focus;
  filter.ignore = config.ignore;
  filter.thread = config.thread;
  filter.no_kernel = config.no_kernel;
  filter.fold_recursion = config.fold_recursion;
  if (config.from) {
    ASSIGN_OR_RETURN(filter.from_ns, ParseOffsetNs("--from", *config.from));
  }
  if (config.to) {
    ASSIGN_OR_RETURN(filter.to_ns, ParseDurationNs("--to", *config.to));
  }
  if (filter.from_ns && filter.to_ns && *filter.from_ns >= *filter.to_ns) {
    return WithHint(absl::InvalidArgumentError(
                        absl::StrCat("nothing lies between --from ", *config.from, " and --to ", *config.to)),
                    "both are times since the start of the recording, the earlier one first: --from 10s --to 20s");
  }
  // Invalid expressions are reported now, and not when a recording is over.
  const absl::StatusOr<ProfileModel> tried = FilterProfile(ProfileModel{}, filter);
  if (!tried.ok()) return tried.status();
  return filter;
}

absl::StatusOr<ProfileModel> ApplyFilter(ProfileModel model, const ProfileFilter& filter) {
  const bool had_samples = model.samples.size() > 0;
  absl::StatusOr<ProfileModel> kept = FilterProfile(std::move(model), filter);
  if (kept.ok() && had_samples && kept->samples.size() == 0) {
    std::fputs("note: no sample passes the filters; the result is empty\n", stderr);
  }
  return kept;
}

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const WriterRow& row : WriterTable()) names.emplace_back(row.format);
  return names;
}

namespace {

// An hour's recording must not end up in another format than its name says.
absl::StatusOr<const WriterRow*> WriterOf(const std::string& path, absl::string_view format) {
  const WriterRow* by_path = WriterOfPath(path);
  const WriterRow* by_format = format.empty() ? nullptr : WriterOfFormat(format);
  if (by_path != nullptr && by_format != nullptr && by_path != by_format) {
    return WithHint(
        absl::InvalidArgumentError(absl::StrCat("--format ", format, " and the name ", path, " say different formats")),
        "the extension alone is enough");
  }
  if (by_path != nullptr) return by_path;
  if (by_format != nullptr) return by_format;
  const std::string name = path.substr(path.rfind('/') + 1);
  if (const size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) {
    std::vector<absl::string_view> known;
    for (const WriterRow& row : WriterTable()) known.insert(known.end(), row.extensions.begin(), row.extensions.end());
    return WithHint(absl::InvalidArgumentError(absl::StrCat(name.substr(dot), " is the extension of no format")),
                    absl::StrCat("known are ", absl::StrJoin(known, " "), "; or say --format"));
  }
  return &WriterTable().front();
}

}  // namespace

void DeclareBuildToolOptions(CLI::App& app, BuildToolConfig& config) {
  app.add_option("--module", config.module,
                 "image or assembly of .order, .mip and .callchain.json files, by file name or path;\n"
                 "%m in the name of a .order or .mip file: one file for each; docs/compiler-feedback.md")
      ->type_name("NAME");
  static constexpr Choice<FunctionOrder> kOrders[] = {{"hot", FunctionOrder::kHot}, {"first", FunctionOrder::kFirst}};
  DeclareChoice(app, "--order", config.order, kOrders,
                "functions in a .order file: hot: by samples; first: by the first sample, for starts", "ORDER");
}

absl::StatusOr<ProfileOutput> OpenProfileOutput(const std::string& path, absl::string_view format,
                                                const BuildToolConfig& build_tool) {
  ASSIGN_OR_RETURN(const WriterRow* const writer, WriterOf(path, format));
  if (absl::StrContains(path, kModuleInName)) {
    if (!writer->of_one_image || !build_tool.module.empty()) {
      return WithHint(absl::InvalidArgumentError(
                          absl::StrCat(path, ": %m is for .order and .mip files of all images, so without --module")),
                      "leave %m out of the name");
    }
    // Their names are not known yet, but it is known whether there can be any.
    const std::string folder = path.find('/') == std::string::npos ? "." : path.substr(0, path.rfind('/') + 1);
    if (access(folder.c_str(), W_OK) != 0) {
      return WithHint(ErrnoError(errno, absl::StrCat("cannot write to ", folder)),
                      "give a file in a folder that exists and that this user may write to");
    }
    return ProfileOutput{std::nullopt, path, writer};
  }
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  return ProfileOutput{std::move(file), path, writer};
}

absl::Status CheckBuildToolConfig(std::span<const ProfileOutput> outputs, const BuildToolConfig& build_tool) {
  const auto none = [&](auto fits) {
    return std::none_of(outputs.begin(), outputs.end(), [&](const ProfileOutput& one) { return fits(*one.writer); });
  };
  if (!build_tool.module.empty() && none([](const WriterRow& writer) { return writer.for_build_tools; })) {
    return WithHint(absl::InvalidArgumentError("--module is for .order, .mip and .callchain.json, and none is written"),
                    "add -o NAME.order, or leave --module out");
  }
  if (build_tool.order != BuildToolConfig().order &&
      none([](const WriterRow& writer) { return writer.format == "order"; })) {
    return WithHint(absl::InvalidArgumentError("--order is for .order files, and none is written"),
                    "add -o NAME.order, or leave --order out");
  }
  return absl::OkStatus();
}

namespace {

absl::Status WriteOne(const ProfileModel& model, const WriterOptions& options, const WriterRow& writer,
                      OutputFile& file) {
  RETURN_IF_ERROR(writer.make(options)->Write(model, [&](absl::string_view text) { return file.Write(text); }));
  return file.Finish();
}

// Each image gets a file: `path` with its name for %m.
absl::Status WriteEach(const ProfileModel& model, WriterOptions options, const ProfileOutput& output, bool quiet) {
  std::set<std::string> written;
  for (const ProfileImage& image : ImagesOf(model)) {
    if (output.writer->format == "order" && image.kind != ImageKind::kElf) continue;
    options.module = image.path.empty() ? image.name : image.path;
    const std::string name = NameOfModule(output.path, image.name);
    if (!written.insert(name).second) {
      if (!quiet) {
        std::fprintf(stderr, "note: %s is of another image of that name; --module %s gives this one\n",
                     PrintableText(name).c_str(), PrintableText(options.module).c_str());
      }
      continue;
    }
    ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(name));
    RETURN_IF_ERROR(WriteOne(model, options, *output.writer, file));
  }
  if (written.empty()) return ChooseImage({}, "").status();
  if (!quiet) std::fprintf(stderr, "wrote %s\n", PrintableText(absl::StrJoin(written, " ")).c_str());
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteProfile(const ProfileModel& model, const ProfileWriting& writing, const BuildToolConfig& build_tool,
                          ProfileOutput& output) {
  WriterOptions options;
  options.annotate_source = writing.annotate_source;
  options.module = build_tool.module;
  options.function_order = build_tool.order;
  if (!output.file) return WriteEach(model, std::move(options), output, writing.quiet);
  if (!writing.quiet) {
    options.note = [name = output.name()](absl::string_view note) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), PrintableText(note).c_str());
    };
  }
  return WriteOne(model, options, *output.writer, *output.file);
}

absl::Status GiveUpRightsForCode(const ProfileModel& model, std::span<const ProfileOutput> outputs) {
  if (model.code.empty()) return absl::OkStatus();
  // Its library stays loaded for those that open it again without rights.
  const absl::Status opened = Disassembler::Open().status();
  const bool shown = std::any_of(outputs.begin(), outputs.end(),
                                 [](const ProfileOutput& output) { return output.writer->format == "html"; });
  if (!opened.ok() && shown) SayNote(opened);
  return EnterSandbox(WriterProfile()).status();
}

absl::Status CodeIsOfTheWhole() {
  return WithHint(absl::InvalidArgumentError("--code counts the samples of whole recordings"),
                  "leave out what filters the result");
}

absl::Status CheckLostCode(const ProfileOutput& output, bool merged) {
  const absl::Status lost =
      merged ? WithHint(absl::InvalidArgumentError("machine code is of one recording, and several were merged"),
                        "convert the recording with the code by itself")
             : CodeIsOfTheWhole();
  if (output.writer->needs_code) return Annotate(lost, output.name());
  if (output.writer->keeps_code) SayNote(Annotate(lost, absl::StrCat(output.name(), " has no machine code")));
  return absl::OkStatus();
}

void SayNote(const absl::Status& status) {
  std::fprintf(stderr, "note: %s\nhint: %s\n", PrintableText(status.message()).c_str(),
               PrintableText(HintOf(status)).c_str());
}

absl::StatusOr<ProfileModel> ReadProfileFile(const std::string& path, ProfileSource source) {
  const bool only_regular = source == ProfileSource::kRegularFile;
  if (only_regular && path == "-") {
    return WithHint(absl::InvalidArgumentError("no profile is read from standard input here"),
                    "give the path of a file");
  }
  const std::string name = path == "-" ? "standard input" : path;
  absl::StatusOr<UniqueFd> fd = path == "-"    ? UniqueFd(dup(STDIN_FILENO))
                                : only_regular ? OpenRegularFile(path)
                                               : OpenForReading(path);
  if (!fd.ok()) {
    return WithHint(Annotate(fd.status(), "cannot read the profile"),
                    "clrsampler record -o FILE.json makes one that can be converted, merged and compared");
  }
  const absl::StatusOr<std::string> bytes = ReadWholeFile(fd->get(), kMaxProfileBytes);
  if (!bytes.ok()) {
    return WithHint(Annotate(bytes.status(), absl::StrCat("cannot read ", name)),
                    "give one file, as record -o FILE.json writes it");
  }
  absl::StatusOr<ProfileModel> model = ReadProfile(*bytes);
  if (!model.ok()) return Annotate(model.status(), absl::StrCat("cannot read ", name));
  return model;
}

}  // namespace clrsampler
