#include "inspect/naming_outlook.h"

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

std::string WhyNoMemory(const ProcessFacts& facts) {
  if (absl::IsPermissionDenied(facts.memory)) return "its memory can't be read";
  return absl::StrCat("its memory is not read: ", facts.memory.message());
}

NamingOutlook OutlookOfNativeAot(const ProcessFacts& facts) {
  NamingOutlook outlook;
  if (facts.has_symbols) {
    outlook.sources.emplace_back("elf");
    outlook.word = NamingWord::kFull;
  } else {
    outlook.reason = "the program is stripped and no debug file lies beside it";
  }
  return outlook;
}

}  // namespace

absl::string_view NamingWordText(NamingWord word) {
  switch (word) {
    case NamingWord::kFull:
      return "full";
    case NamingWord::kGood:
      return "good";
    case NamingWord::kPartial:
      return "partial";
    case NamingWord::kPoor:
      return "poor";
  }
  return "poor";
}

NamingOutlook OutlookOf(const ProcessFacts& facts) {
  NamingOutlook outlook;
  if (!facts.readable.ok()) {
    outlook.reason = "not readable";
    return outlook;
  }
  if (!facts.runtime.has_value()) {
    outlook.reason = "no .NET runtime";
    return outlook;
  }
  const DotNetRuntime& runtime = *facts.runtime;
  if (runtime.emulated()) {
    outlook.reason = EmulationText(runtime);
    return outlook;
  }
  if (runtime.kind == RuntimeImageKind::kNativeAot) return OutlookOfNativeAot(facts);
  if (runtime.kind == RuntimeImageKind::kMono) {
    outlook.reason = "Mono's code has no source of names";
    return outlook;
  }
  const bool memory = facts.memory.ok() || absl::IsUnavailable(facts.memory);  // what has only begun is tried again
  // Its precompiled images are as new as its structures.
  const bool images = runtime.precompiled && !MayBeNewerThanKnown(runtime.version);
  if (memory) outlook.sources.emplace_back("memory");
  if (facts.jitdump.live) outlook.sources.emplace_back("jitdump");
  if (facts.perf_map.live) outlook.sources.emplace_back(facts.perf_map_is_ours ? "perf-map(clrsampler)" : "perf-map");
  if (images) outlook.sources.emplace_back("r2r");
  if (facts.has_symbols) outlook.sources.emplace_back("elf");

  const bool compiled = memory || facts.jitdump.live || facts.perf_map.live;
  // A jitdump holds the precompiled methods too; with DOTNET_ReadyToRun=0 there are none.
  const bool precompiled =
      memory || facts.jitdump.live || images || facts.environment.ready_to_run == std::optional<uint32_t>(0);
  if (memory || (facts.jitdump.live && precompiled)) {
    outlook.word = NamingWord::kFull;
  } else if (compiled && precompiled) {
    outlook.word = NamingWord::kGood;
    outlook.reason = absl::StrCat(WhyNoMemory(facts), ", and a perf map has no times");
  } else if (compiled) {
    outlook.word = NamingWord::kPartial;
    outlook.reason = absl::StrCat(WhyNoMemory(facts), ", and precompiled code is in no file");
  } else if (precompiled) {
    outlook.word = NamingWord::kPartial;
    outlook.reason = absl::StrCat(WhyNoMemory(facts), ", and the process writes neither perf map nor jitdump");
  } else {
    outlook.reason = WhyNoMemory(facts);
  }
  return outlook;
}

}  // namespace clrsampler
