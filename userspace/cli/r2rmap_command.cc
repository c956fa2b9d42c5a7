#include "cli/r2rmap_command.h"

#include <cstdio>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/exit_status.h"
#include "cli/input_file.h"
#include "cli/inspect_command.h"
#include "cli/output_file.h"
#include "clr/r2r_map_content.h"
#include "formats/byte_reader.h"
#include "formats/jit/r2rmap_writer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kImageHint[] = "give a .dll that crossgen2 or PublishReadyToRun compiled";
constexpr char kMapHint[] = "crossgen2 --perfmap --perfmap-format-version:1 gives an image the id of its map";

bool IsImage(const MappedFile& file) { return absl::StartsWith(AsText(file.bytes()), "MZ"); }

absl::Status PrintImage(const R2rImageFile& file) {
  const R2rImage& image = file.image();
  const R2rHeader& header = *image.pe().r2r();
  std::string text = absl::StrCat("ready-to-run ", header.major, ".", header.minor, ", ",
                                  image.pe().machine() == PeMachine::kArm64 ? "ARM64" : "X64", ", ",
                                  image.name().empty() ? "composite" : absl::Utf8SafeCEscape(image.name()), "\n",
                                  image.method_count(), " methods, ", image.instance_count(), " generic instances\n");
  const absl::StatusOr<R2rMapHeader> map = R2rMapHeaderOf(image.pe());
  if (map.ok()) {
    absl::StrAppend(&text, "its r2rmap: ", absl::Utf8SafeCEscape(R2rMapFileNameOf(image.pe())), ", version ",
                    map->version, ", signature ", R2rMapSignatureText(*map), "\n");
  } else {
    absl::StrAppend(&text, "it names no r2rmap\n");
  }
  return PrintAll(text);
}

absl::Status WriteMap(const R2rMapConfig& config, R2rImageFile& file) {
  const absl::StatusOr<R2rMapContent> content = R2rMapContentOf(file.image(), file.assemblies());
  if (!content.ok()) return WithHint(Annotate(content.status(), config.file), kMapHint);
  if (content->nameless > 0) {
    std::string missing = absl::StrJoin(file.image().missing_assemblies(), ", ");
    if (!missing.empty()) missing = absl::StrCat(": ", absl::Utf8SafeCEscape(missing), " not found; --reference DIR");
    std::fprintf(stderr, "note: %llu methods are left out, a part of their name is not known%s\n",
                 static_cast<unsigned long long>(content->nameless), missing.c_str());
  }
  ASSIGN_OR_RETURN(OutputFile output, OutputFile::Open(config.output));
  const std::string text = WriteR2rMap(content->map);
  if (file.damaged()) return absl::DataLossError(absl::StrCat(config.file, " was truncated while it was read"));
  RETURN_IF_ERROR(output.Write(text));
  return output.Finish();
}

}  // namespace

void DeclareR2rMapOptions(CLI::App& app, R2rMapConfig& config) {
  app.add_option("file", config.file, "NAME.ni.r2rmap, or a ready-to-run image")->required()->type_name("FILE");
  app.add_flag("--write", config.write, "make the map of the image");
  app.add_option("--output,-o", config.output, "file for that map; without it standard output")->type_name("FILE");
  app.add_option("--reference", config.references,
                 "folder with assemblies that the image's names need and that are not beside it; may be given several "
                 "times")
      ->allow_extra_args(false)
      ->type_name("DIR");
}

absl::Status RunR2rMap(const R2rMapConfig& config) {
  if (!config.write && !(config.output.empty() && config.references.empty())) {
    return WithHint(absl::InvalidArgumentError("--output and --reference are for maps that --write makes"),
                    "add --write, or leave them out");
  }
  ASSIGN_OR_RETURN(const MappedFile input, MapInputFile(config.file));
  if (!config.write && !IsImage(input)) return PrintR2rMap(config.file);
  absl::StatusOr<R2rImageFile> file = R2rImageFile::Open(config.file, config.references);
  if (!file.ok()) return WithHint(file.status(), kImageHint);
  return config.write ? WriteMap(config, *file) : PrintImage(*file);
}

}  // namespace clrsampler
