#include "clr/runtime_facts.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace clrsampler {
namespace {

constexpr uint16_t kAnyPatch = UINT16_MAX;

constexpr RuntimeDefect kDefects[] = {
    // Broken on 10.0.11 and 10.0.12, whole from 10.0.13 on; the cause came before 10.0.0 (#113943, fix #122274, in the
    // release branch by #133048).
    {DefectKind::kJitdumpDies,
     {10, 0, 0},
     {10, 0, 12},
     "jitdumps end after their first records",
     "use the perf map (DOTNET_PerfMapEnabled=1 or 3), or runtime 10.0.13 and newer",
     "dotnet/runtime#113943"},
    // Held at start-up by DOTNET_DefaultDiagnosticPortSuspend=1 and then told EnablePerfMap, 8.0.30 and 9.0.19 end with
    // SIGSEGV; 10.0.12 and 10.0.14 do not. The fixes (#123226, #124055) came to release/10.0 by #124208, after 10.0.3.
    {DefectKind::kEarlyPerfMapCrash,
     {8, 0, 0},
     {9, 0, kAnyPatch},
     "switching the perf map on during start-up can crash the process",
     "let no tool enable perf maps in the first seconds of the process",
     "dotnet/runtime#122472"},
    {DefectKind::kEarlyPerfMapCrash,
     {10, 0, 0},
     {10, 0, 3},
     "switching the perf map on during start-up can crash the process",
     "let no tool enable perf maps in the first seconds of the process, or update the runtime",
     "dotnet/runtime#122472"},
    // Three locks, taken in the wrong order during a suspension for GC when a stub is announced. Came with #113943;
    // #129142 was merged to release/10.0 after 10.0.9 was out.
    {DefectKind::kPerfMapDeadlock,
     {10, 0, 0},
     {10, 0, 9},
     "the process can hang for good while a perf map or jitdump is on",
     "start it without DOTNET_PerfMapEnabled, or update the runtime",
     "dotnet/runtime#128401"},
    // Seen with 8.0.30, 9.0.19 and 10.0.14; formats/jit/perf_map_parser.h has the details.
    {DefectKind::kGluedPerfMapLines,
     {8, 0, 0},
     {10, 0, kAnyPatch},
     "perf map lines with names outside ASCII lose their end",
     "none needed: the reader takes glued lines apart; the last characters of such names are missing",
     ""},
    // Seen with 8.0.30, 9.0.19, 10.0.12 and 10.0.14; main replays them since #132190.
    {DefectKind::kEnableSkipsStubs,
     {8, 0, 0},
     {10, 0, kAnyPatch},
     "a perf map that is switched on late lacks the stubs made before",
     "start with DOTNET_PerfMapEnabled=3 where the names of stubs matter",
     "dotnet/runtime#132190"},
    // Three of three times on 10.0.12 and 10.0.14, never on 8.0.30 and 9.0.19.
    {DefectKind::kSocketLeftBehind,
     {10, 0, 0},
     {10, 0, kAnyPatch},
     "the diagnostics socket stays in /tmp when SIGTERM ends the process",
     "remove dotnet-diagnostic-*-socket files of processes that are gone where /tmp is in memory",
     ""},
};
static_assert(std::ranges::all_of(kDefects, [](const RuntimeDefect& defect) {
  return defect.first <= defect.last && !defect.summary.empty() && !defect.way_out.empty();
}));

}  // namespace

std::string RuntimeVersion::Text() const { return known() ? absl::StrCat(major, ".", minor, ".", patch) : "unknown"; }

std::optional<RuntimeVersion> VersionFromFileVersion(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, absl::MaxSplits('.', 3));
  uint32_t major = 0, minor = 0, third = 0;
  if (fields.size() < 3 || !absl::SimpleAtoi(fields[0], &major) || !absl::SimpleAtoi(fields[1], &minor) ||
      !absl::SimpleAtoi(fields[2], &third) || major == 0 || major > 999 || minor > 999 || third > 6'000'000) {
    return std::nullopt;
  }
  return RuntimeVersion{static_cast<uint16_t>(major), static_cast<uint16_t>(minor), static_cast<uint16_t>(third / 100)};
}

std::optional<RuntimeVersion> VersionFromProductVersion(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text.substr(0, text.find_first_of("-+")), '.');
  uint32_t numbers[3] = {};
  if (fields.size() != std::size(numbers)) return std::nullopt;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!absl::SimpleAtoi(fields[i], &numbers[i]) || numbers[i] > UINT16_MAX) return std::nullopt;
  }
  if (numbers[0] == 0) return std::nullopt;
  return RuntimeVersion{static_cast<uint16_t>(numbers[0]), static_cast<uint16_t>(numbers[1]),
                        static_cast<uint16_t>(numbers[2])};
}

std::optional<RuntimeVersion> VersionFromMark(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kVersionMark)) return std::nullopt;
  return VersionFromFileVersion(text.substr(0, text.find(' ')));
}

std::vector<const RuntimeDefect*> DefectsOf(RuntimeVersion version) {
  std::vector<const RuntimeDefect*> defects;
  for (const RuntimeDefect& defect : kDefects) {
    if (version.known() && version >= defect.first && version <= defect.last) defects.push_back(&defect);
  }
  return defects;
}

bool HasDefect(RuntimeVersion version, DefectKind kind) {
  return std::ranges::any_of(DefectsOf(version), [kind](const RuntimeDefect* one) { return one->kind == kind; });
}

bool MayBeNewerThanKnown(RuntimeVersion version) { return !version.known() || version.major > kNewestKnownMajor; }

bool WritesPerfMapInBlocks(RuntimeVersion version) {
  const uint16_t major = MayBeNewerThanKnown(version) ? kNewestKnownMajor : version.major;
  const RuntimeGeneration* generation = RuntimeGenerationOf(major);
  return generation != nullptr && generation->perf_map_in_blocks;
}

}  // namespace clrsampler
