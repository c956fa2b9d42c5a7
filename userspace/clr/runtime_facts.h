// The facts about single releases of .NET. Differences between major versions: clr/runtime_generations.h.
//
// Facts are of two kinds: measured on the runtimes themselves (linux-x64; each row says on which), or read in the
// upstream thread that the row names. Where the release that carries a fix was not verified, the row ends with the last
// release that can't have it.
#ifndef CLRSAMPLER_CLR_RUNTIME_FACTS_H_
#define CLRSAMPLER_CLR_RUNTIME_FACTS_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "clr/runtime_generations.h"

namespace clrsampler {

// Each image of the runtime has its version behind these letters.
inline constexpr absl::string_view kVersionMark = "@(#)Version ";

struct RuntimeVersion {
  uint16_t major = 0;  // 0: a runtime whose version is not known
  uint16_t minor = 0;
  uint16_t patch = 0;

  bool known() const { return major != 0; }
  std::string Text() const;  // "10.0.14"; "unknown"
  friend constexpr auto operator<=>(RuntimeVersion, RuntimeVersion) = default;
};

// "10.0.1426.52326", a file version: the third field is patch * 100 + DD. 8.0.0 has a third field below 100
// (8.0.23.53103). nullopt: not of this form.
std::optional<RuntimeVersion> VersionFromFileVersion(absl::string_view text);
// "10.0.9", "11.0.0-preview.1", a product version. nullopt: not of this form.
std::optional<RuntimeVersion> VersionFromProductVersion(absl::string_view text);
// The text that the runtimes hold: "@(#)Version 10.0.1426.52326 @Commit: ...".
std::optional<RuntimeVersion> VersionFromMark(absl::string_view text);

enum class DefectKind : uint8_t {
  kJitdumpDies,        // the jitdump ends after its first records
  kEarlyPerfMapCrash,  // EnablePerfMap during start-up kills the target
  kPerfMapDeadlock,    // may hang for good while a perf map is on
  kGluedPerfMapLines,  // names outside ASCII swallow the end of their line
  kEnableSkipsStubs,   // stubs made before EnablePerfMap are in no map
  kSocketLeftBehind,   // SIGTERM leaves the diagnostics socket in /tmp
};

struct RuntimeDefect {
  DefectKind kind;
  RuntimeVersion first;  // both inclusive
  RuntimeVersion last;
  absl::string_view summary;   // half a sentence that begins with a small letter
  absl::string_view way_out;   // what to do, one line
  absl::string_view upstream;  // "dotnet/runtime#113943"; empty: known from measurements only
};

// The known ones of exactly this version; none for an unknown one.
std::vector<const RuntimeDefect*> DefectsOf(RuntimeVersion version);
bool HasDefect(RuntimeVersion version, DefectKind kind);

// Nothing is known of it, neither its structures nor its precompiled images: it is newer than all known ones, or it
// does not say its version, as a private build may not.
bool MayBeNewerThanKnown(RuntimeVersion version);

// RuntimeGeneration::perf_map_in_blocks; a version that may be newer than all known ones is taken for the newest.
bool WritesPerfMapInBlocks(RuntimeVersion version);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_RUNTIME_FACTS_H_
