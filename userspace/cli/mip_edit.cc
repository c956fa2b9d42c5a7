#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/mip_config.h"
#include "cli/mip_files.h"
#include "formats/mip/mip_document.h"
#include "formats/mip/mip_merge.h"
#include "os/file_io.h"
#include "output/summary.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxDocumentBytes = size_t{2} << 30;

// The format that was asked for, or else that of the input. The old format is not written any more.
MipLayout LayoutFor(const MipConfig& config, MipLayout read) {
  if (config.layout.empty()) return read == MipLayout::kLlvm ? read : MipLayout::kDocumented;
  return config.layout == TraitsOf(MipLayout::kLlvm).name ? MipLayout::kLlvm : MipLayout::kDocumented;
}

void PrintIgnored(const absl::Status& why) {
  std::fprintf(stderr, "note: ignored %s\n", PrintableText(why.message()).c_str());
  const std::string hint = HintOf(why);
  if (!hint.empty()) std::fprintf(stderr, "hint: %s\n", PrintableText(hint).c_str());
}

// Adds files one after the other to the profile.
class Merger {
 public:
  Merger(MipProfile& profile, const MipConfig& config) : profile_(profile), config_(config) {}

  absl::Status Add(const std::string& path) {
    return WithFileBytes(path, [&](std::span<const std::byte> bytes) {
      return ParseMipHeader(bytes, MipFileType::kProfile).ok() ? AddProfile(bytes) : AddRaw(path, bytes);
    });
  }

 private:
  absl::Status AddRaw(const std::string& path, std::span<const std::byte> bytes) {
    if (!raw_) raw_.emplace(profile_, config_.strict);
    const absl::StatusOr<MipRawMerge> merged = raw_->Merge(bytes);
    if (merged.ok() && merged->odd_bytes > 0) {
      std::fprintf(stderr, "note: %s: %" PRIu64 " bytes of coverage are neither 00 nor FF; counted as not run\n",
                   path.c_str(), merged->odd_bytes);
    }
    return merged.status();
  }
  absl::Status AddProfile(std::span<const std::byte> bytes) {
    raw_.reset();  // what it found out about the profile's records may no longer hold
    return MergeMip(profile_, bytes, config_.force).status();
  }

  MipProfile& profile_;
  const MipConfig& config_;
  std::optional<MipRawMerger> raw_;
};

}  // namespace

absl::Status CreateMip(const MipConfig& config) {
  ASSIGN_OR_RETURN(const MipMap map, ReadMipMapFile(config.input));
  RETURN_IF_ERROR(WriteMipFile(map.profile, LayoutFor(config, map.profile.layout), config.profile));
  std::fprintf(stderr, "wrote an empty profile of %zu functions to %s\n", map.profile.functions.size(),
               config.profile.c_str());
  if (map.discarded > 0) {
    std::fprintf(stderr, "note: left out %" PRIu64 " functions that the linker discarded\n", map.discarded);
  }
  if (map.repeated > 0) {
    std::fprintf(stderr, "note: left out %" PRIu64 " entries of functions that the map has already\n", map.repeated);
  }
  return absl::OkStatus();
}

absl::Status MergeIntoMip(const MipConfig& config) {
  size_t next = 0;
  std::string begin = config.profile;
  if (access(begin.c_str(), F_OK) != 0) begin = config.inputs[next++];  // a sum needs no profile to begin with
  absl::StatusOr<MipProfile> profile = ReadMipFile(begin, MipNaming::kLater);
  if (!profile.ok() && next > 0) {
    return WithHint(
        absl::NotFoundError(absl::StrCat("there is no profile ", config.profile, " to add ", begin, " to")),
        absl::StrCat("make an empty one of the program's map: clrsampler mip create -p ", config.profile, " MAP"));
  }
  if (!profile.ok()) return profile.status();
  Merger merger(*profile, config);
  size_t merged = next;
  std::vector<absl::Status> ignored;
  for (; next < config.inputs.size(); ++next) {
    const absl::Status added = merger.Add(config.inputs[next]);
    // A profile that was cut while it was added has left its mark on the sum.
    if (!added.ok() && (config.strict || absl::IsAborted(added))) return added;
    if (!added.ok()) ignored.push_back(added);
    merged += added.ok();
  }
  if (merged == 0) return ignored.front();
  for (const absl::Status& why : ignored) PrintIgnored(why);
  RETURN_IF_ERROR(WriteMipFile(*profile, LayoutFor(config, profile->layout), config.profile));
  std::fprintf(stderr, "merged %zu of %zu files into %s\n", merged, config.inputs.size(), config.profile.c_str());
  return absl::OkStatus();
}

absl::Status MipFromYaml(const MipConfig& config) {
  const bool standard_input = config.input == "-" || config.input.empty();
  const std::string name = standard_input ? "standard input" : config.input;
  const absl::StatusOr<UniqueFd> fd = standard_input ? UniqueFd(dup(STDIN_FILENO)) : OpenForReading(config.input);
  if (!fd.ok()) return WithHint(Annotate(fd.status(), "cannot read"), "give the path of an existing file");
  const absl::StatusOr<std::string> text = ReadWholeFile(fd->get(), kMaxDocumentBytes);
  if (!text.ok()) return Annotate(text.status(), absl::StrCat("cannot read ", name));
  const absl::StatusOr<MipProfile> profile = ReadMipDocument(*text);
  if (!profile.ok()) return Annotate(profile.status(), name);
  RETURN_IF_ERROR(WriteMipFile(*profile, LayoutFor(config, MipLayout::kDocumented), config.profile));
  std::fprintf(stderr, "wrote a profile of %zu functions to %s\n", profile->functions.size(), config.profile.c_str());
  return absl::OkStatus();
}

}  // namespace clrsampler
