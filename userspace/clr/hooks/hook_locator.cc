#include "clr/hooks/hook_locator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "clr/hooks/gc_search.h"
#include "clr/hooks/image_code.h"
#include "clr/hooks/jit_search.h"
#include "clr/hooks/suspend_search.h"
#include "clr/hooks/symbol_search.h"
#include "clr/runtime_image.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kKeepDebugFile = "keep the .dbg file that dotnet publish writes beside the program";
constexpr absl::string_view kWholeImage = "the file is damaged or is no .NET runtime; install it again";

// A function that is believed to be a hook's, before it is checked.
struct Candidate {
  FunctionIndex function = 0;
  uint8_t argument_shift = 0;
  std::string evidence;
  bool proven_by_code = false;
};
using FoundCandidates = absl::StatusOr<std::vector<Candidate>>;

// Names by the Itanium C++ ABI. Debug files of NativeAOT programs have those of GCToEEInterface.
constexpr absl::string_view kHookNames[] = {
    "_ZN6CILJit13compileMethodEP11ICorJitInfoP19CORINFO_METHOD_INFOjPPhPj",
    "_ZN13ThreadSuspend9SuspendEEENS_14SUSPEND_REASONE",
    "_ZN13ThreadSuspend9RestartEEEii",
    "_ZN15GCToEEInterface9SuspendEEE14SUSPEND_REASON",
    "_ZN15GCToEEInterface9RestartEEEb",
    "_ZN15GCToEEInterface11DiagGCStartEib",
    "_ZN15GCToEEInterface9DiagGCEndEmiib",
    "_ZN10standalone15GCToEEInterface11DiagGCStartEib",
    "_ZN10standalone15GCToEEInterface9DiagGCEndEmiib",
    "_ZN15GCToEEInterface6GcDoneEi",
    "_ZN3WKS7gc_heap10do_post_gcEv",
    "_ZN3SVR7gc_heap10do_post_gcEv",
};
enum Name {
  kCompileMethodName,
  kSuspendName,
  kRestartName,
  kAotSuspendName,
  kAotRestartName,
  kDiagStartName,
  kDiagEndName,
  kSlotDiagStartName,
  kSlotDiagEndName,
  kGcDoneName,
  kWorkstationPostGcName,
  kServerPostGcName,
};

// The functions of one image that have a known name.
class NamedFunctions {
 public:
  NamedFunctions(const ImageCode& code, const absl::StatusOr<ImageSymbols>& symbols) : code_(code) {
    if (symbols.ok()) {
      found_ = FindFunctionsByName(code, symbols->table, kHookNames);
    } else {
      found_ = symbols.status();
    }
  }

  // Several names stand for one hook, and the first one is needed. A function that only jumps to the one before it is
  // left out: every call of it comes by there.
  FoundCandidates Find(std::initializer_list<Name> names) const {
    if (!found_.ok()) return found_.status();
    std::vector<Candidate> candidates;
    for (const Name name : names) {
      const NamedFunction& found = (*found_)[name];
      if (!found.ok()) return found.status();
      const bool first = candidates.empty();
      if (!*found) {
        if (first) return absl::NotFoundError(absl::StrCat("there is no symbol ", kHookNames[name]));
        continue;
      }
      const auto thunk = code_.JumpThunkOf(**found);
      if (!first && thunk && thunk->target == candidates.front().function) continue;
      candidates.push_back(
          {**found, static_cast<uint8_t>(first ? 0 : 1), absl::StrCat("the symbol ", kHookNames[name])});
    }
    return candidates;
  }

 private:
  const ImageCode& code_;
  absl::StatusOr<std::vector<NamedFunction>> found_;
};

// The result of both ways together. Symbols may be absent, and code may be arranged in an unknown way where there are
// symbols. A contradiction refuses the hook.
FoundCandidates Agreed(const ImageCode& code, FoundCandidates by_symbols, const FoundCandidates& by_structure) {
  if (absl::IsNotFound(by_symbols.status())) return by_structure;
  if (!by_symbols.ok() || !by_structure.ok()) return by_symbols;
  const auto text = [&](const std::vector<Candidate>& candidates) {
    std::string addresses;
    for (const Candidate& one : candidates) {
      absl::StrAppend(&addresses, addresses.empty() ? "" : " and ", AddressText(code.Start(one.function)));
    }
    return addresses;
  };
  bool same = by_symbols->size() == by_structure->size();
  for (Candidate& named : *by_symbols) {
    const auto found = std::find_if(by_structure->begin(), by_structure->end(), [&](const Candidate& one) {
      return one.function == named.function && one.argument_shift == named.argument_shift;
    });
    same = same && found != by_structure->end();
    if (!same) break;
    absl::StrAppend(&named.evidence, "; and ", found->evidence);
    named.proven_by_code = true;
  }
  if (same) return by_symbols;
  return absl::FailedPreconditionError(
      absl::StrCat("symbols lead to ", text(*by_symbols), ", but the code to ", text(*by_structure)));
}

FoundCandidates OneCandidate(const absl::StatusOr<FoundFunction>& found) {
  if (!found.ok()) return found.status();
  return std::vector<Candidate>{{found->function, 0, found->evidence, /*proven_by_code=*/true}};
}

// The last check, through which every address goes.
absl::StatusOr<HookPoint> CheckedPoint(const ImageCode& code, HookKind kind, HookImage image,
                                       const Candidate& candidate) {
  constexpr size_t kShownBytes = 8;
  const std::span<const std::byte> bytes = code.Code(candidate.function);
  HookPoint point{.kind = kind,
                  .image = image,
                  .address = code.Start(candidate.function),
                  .offset = code.functions().Offset(candidate.function),
                  .argument_shift = candidate.argument_shift,
                  .proven_by_code = candidate.proven_by_code,
                  .evidence = candidate.evidence};
  if (!code.BeginsWithFrame(candidate.function)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the function at ", AddressText(point.address), " begins with ",
                     absl::BytesToHexString(AsText(bytes.first(std::min(bytes.size(), kShownBytes)))),
                     ", which is no known way to set up a frame"));
  }
  if (code.image().ToOffset(point.address) != point.offset || code.image().ToAddress(point.offset) != point.address) {
    return absl::DataLossError(
        absl::StrCat("the address ", AddressText(point.address), " has no one place in the file"));
  }
  return point;
}

HookPoints CheckedPoints(const ImageCode& code, HookKind kind, HookImage image, const FoundCandidates& candidates) {
  if (!candidates.ok()) return candidates.status();
  std::vector<HookPoint> points;
  for (const Candidate& candidate : *candidates) {
    ASSIGN_OR_RETURN(HookPoint point, CheckedPoint(code, kind, image, candidate));
    points.push_back(std::move(point));
  }
  return points;
}

// Two hooks at one address: one of them is wrong.
void RefuseSharedAddresses(RuntimeHooks& hooks) {
  std::array<bool, kHookKinds> shared{};
  const auto points_of = [&](size_t kind) {
    return hooks.points[kind].ok() ? std::span<const HookPoint>(*hooks.points[kind]) : std::span<const HookPoint>();
  };
  for (size_t a = 0; a < kHookKinds; ++a) {
    for (size_t b = 0; b < kHookKinds; ++b) {
      for (const HookPoint& one : points_of(a)) {
        for (const HookPoint& other : points_of(b)) {
          if (&one != &other && one.image == other.image && one.offset == other.offset) shared[a] = true;
        }
      }
    }
  }
  for (size_t kind = 0; kind < kHookKinds; ++kind) {
    if (shared[kind]) {
      hooks.points[kind] =
          WithHint(absl::FailedPreconditionError("the function was also found for another hook"), kUnknownBuild);
    }
  }
}

// Collects what was found; begins with everything refused.
class Locator {
 public:
  Locator() {
    for (HookPoints& points : hooks_.points) points = absl::NotFoundError("there is no image of the runtime");
  }

  RuntimeHooks Locate(const HookImages& images) {
    std::optional<RuntimeImageKind> kind;
    if (images.runtime != nullptr) {
      kind = ReadRuntimeImage(*images.runtime).kind;
      LocateInRuntime(*images.runtime, images.runtime_debug, *kind);
    }
    if (kind == RuntimeImageKind::kCoreClr || !kind) {
      if (images.jit != nullptr) {
        LocateInJit(*images.jit, images.jit_debug);
      } else {
        At(HookKind::kCompileMethod) = absl::NotFoundError("there is no image of the JIT");
      }
    }
    RefuseSharedAddresses(hooks_);
    if (!hooks_[HookKind::kCompileMethod].ok()) hooks_.jit_return = hooks_[HookKind::kCompileMethod].status();
    if (!hooks_[HookKind::kDiagGcEnd].ok()) hooks_.gc_settings = hooks_[HookKind::kDiagGcEnd].status();
    return std::move(hooks_);
  }

 private:
  HookPoints& At(HookKind kind) { return hooks_.points[static_cast<size_t>(kind)]; }

  void Refuse(const absl::Status& status, absl::string_view hint) {
    for (HookPoints& points : hooks_.points) points = WithHint(status, hint);
  }

  void LocateInRuntime(const ElfImage& image, const ElfImage* debug, RuntimeImageKind kind) {
    if (kind != RuntimeImageKind::kCoreClr && kind != RuntimeImageKind::kSingleFileHost &&
        kind != RuntimeImageKind::kNativeAot) {
      return Refuse(absl::NotFoundError("the image does not export what a .NET runtime exports"), kWholeImage);
    }
    const absl::StatusOr<ImageSymbols> symbols = SymbolsOf(image, debug);
    const bool by_names = kind == RuntimeImageKind::kNativeAot;
    const ElfSymbolTable* const table = symbols.ok() && symbols->same_build ? &symbols->table : nullptr;
    absl::StatusOr<ImageCode> code = by_names ? ImageCode::ReadForNames(image, table) : ImageCode::Read(image);
    if (!code.ok()) return Refuse(Annotate(code.status(), "the runtime's functions can't be told"), kWholeImage);
    const NamedFunctions names(*code, symbols);
    if (by_names) return LocateInNativeAot(*code, names);

    const SuspendSearch suspend(*code);
    const absl::Status indexed = code->IndexReferences(suspend.Watched());
    if (!indexed.ok()) return Refuse(indexed, kWholeImage);
    Put(*code, HookKind::kSuspendEE, names.Find({kSuspendName}), OneCandidate(suspend.SuspendEE()));
    Put(*code, HookKind::kRestartEE, names.Find({kRestartName}), OneCandidate(suspend.RestartEE()));
    RefuseSharedAddresses(hooks_);  // collections are told by these two
    LocateCollections(*code, names);
    if (kind == RuntimeImageKind::kSingleFileHost) LocateCompiler(*code, names, HookImage::kRuntime);
  }

  void LocateInNativeAot(const ImageCode& code, const NamedFunctions& names) {
    const auto put = [&](HookKind kind, Name name) {
      At(kind) = CheckedPoints(code, kind, HookImage::kRuntime, names.Find({name}));
      if (!At(kind).ok()) At(kind) = WithHint(At(kind).status(), kKeepDebugFile);
    };
    put(HookKind::kSuspendEE, kAotSuspendName);
    put(HookKind::kRestartEE, kAotRestartName);
    put(HookKind::kDiagGcStart, kDiagStartName);
    put(HookKind::kDiagGcEnd, kDiagEndName);
    At(HookKind::kCompileMethod) = absl::NotFoundError("a NativeAOT program compiles nothing while it runs");
    if (!At(HookKind::kDiagGcEnd).ok()) return;
    std::vector<FunctionIndex> do_post_gc;
    for (const Name name : {kWorkstationPostGcName, kServerPostGcName}) {  // programs have one or both
      const FoundCandidates found = names.Find({name});
      if (found.ok()) do_post_gc.push_back(found->front().function);
    }
    LocateSettings(code, names, do_post_gc, std::nullopt);
  }

  absl::StatusOr<GcCallbacks> CallbacksOf(const ImageCode& code) {
    for (const HookKind needed : {HookKind::kSuspendEE, HookKind::kRestartEE}) {
      if (At(needed).ok()) continue;
      return Annotate(At(needed).status(), absl::StrCat("the collector's callbacks are told by ", HookKindText(needed),
                                                        ", which is not found"));
    }
    return FindGcCallbacks(code, FunctionOf(code, HookKind::kSuspendEE), FunctionOf(code, HookKind::kRestartEE));
  }

  void LocateCollections(const ImageCode& code, const NamedFunctions& names) {
    const absl::StatusOr<GcCallbacks> callbacks = CallbacksOf(code);
    const auto candidates = [&](const std::vector<GcCallback> GcCallbacks::*which) -> FoundCandidates {
      if (!callbacks.ok()) return callbacks.status();
      std::vector<Candidate> result;
      for (const GcCallback& one : (*callbacks).*which) {
        result.push_back(
            {one.function, static_cast<uint8_t>(one.takes_this ? 1 : 0), one.evidence, /*proven_by_code=*/true});
      }
      return result;
    };
    Put(code, HookKind::kDiagGcStart, names.Find({kDiagStartName, kSlotDiagStartName}),
        candidates(&GcCallbacks::diag_gc_start));
    Put(code, HookKind::kDiagGcEnd, names.Find({kDiagEndName, kSlotDiagEndName}),
        candidates(&GcCallbacks::diag_gc_end));
    if (!At(HookKind::kDiagGcEnd).ok()) return;
    LocateSettings(code, names, PostGcFunctions(code, FunctionOf(code, HookKind::kDiagGcEnd)),
                   callbacks.ok() ? std::optional(callbacks->gc_done) : std::nullopt);
  }

  void LocateSettings(const ImageCode& code, const NamedFunctions& names, const std::vector<FunctionIndex>& do_post_gc,
                      std::optional<FunctionIndex> gc_done) {
    const FoundCandidates named = names.Find({kGcDoneName});
    if (!gc_done && named.ok()) gc_done = named->front().function;
    if (gc_done) {
      hooks_.gc_settings = FindGcSettings(code, do_post_gc, *gc_done, FunctionOf(code, HookKind::kDiagGcEnd));
    } else {
      hooks_.gc_settings = named.status();
    }
    if (!hooks_.gc_settings.ok()) hooks_.gc_settings = WithHint(hooks_.gc_settings.status(), kUnknownBuild);
  }

  void LocateInJit(const ElfImage& image, const ElfImage* debug) {
    const absl::StatusOr<ImageCode> code = ImageCode::Read(image);
    if (!code.ok()) {
      At(HookKind::kCompileMethod) =
          WithHint(Annotate(code.status(), "the JIT's functions can't be told"), kWholeImage);
      return;
    }
    LocateCompiler(*code, NamedFunctions(*code, SymbolsOf(image, debug)), HookImage::kJit);
  }

  void LocateCompiler(const ImageCode& code, const NamedFunctions& names, HookImage image) {
    const absl::StatusOr<JitCompiler> compiler = FindJitCompiler(code, image == HookImage::kJit);
    if (compiler.ok()) hooks_.jit_interface = compiler->guid;
    const auto by_structure = [&]() -> FoundCandidates {
      if (!compiler.ok()) return compiler.status();
      return std::vector<Candidate>{{compiler->compile_method, 0, compiler->evidence, /*proven_by_code=*/true}};
    };
    Put(code, HookKind::kCompileMethod, names.Find({kCompileMethodName}), by_structure(), image);
    if (!At(HookKind::kCompileMethod).ok()) return;
    hooks_.jit_return = ReturnOf(code, FunctionOf(code, HookKind::kCompileMethod), image);
    if (!hooks_.jit_return.ok()) hooks_.jit_return = WithHint(hooks_.jit_return.status(), kUnknownBuild);
  }

  absl::StatusOr<JitReturn> ReturnOf(const ImageCode& code, FunctionIndex compile_method, HookImage image) {
    ASSIGN_OR_RETURN(const JitReturnSite site, FindJitReturn(code, compile_method, hooks_.jit_interface));
    return JitReturn{.image = image,
                     .address = {code.Start(compile_method).value + site.offset},
                     .offset = {code.functions().Offset(compile_method).value + site.offset},
                     .form = site.form};
  }

  void Put(const ImageCode& code, HookKind kind, const FoundCandidates& by_symbols, const FoundCandidates& by_structure,
           HookImage image = HookImage::kRuntime) {
    At(kind) = CheckedPoints(code, kind, image, Agreed(code, by_symbols, by_structure));
    if (!At(kind).ok()) At(kind) = WithHint(At(kind).status(), kUnknownBuild);
  }

  // The function of a hook that was found; of several, the one that is no slot's body.
  FunctionIndex FunctionOf(const ImageCode& code, HookKind kind) {
    const std::vector<HookPoint>& points = *At(kind);
    const auto point = std::min_element(points.begin(), points.end(), [](const HookPoint& a, const HookPoint& b) {
      return a.argument_shift < b.argument_shift;
    });
    return *code.functions().StartingAt(point->address);
  }

  RuntimeHooks hooks_;
};

}  // namespace

absl::string_view HookKindText(HookKind kind) {
  switch (kind) {
    case HookKind::kCompileMethod:
      return "compileMethod";
    case HookKind::kSuspendEE:
      return "SuspendEE";
    case HookKind::kRestartEE:
      return "RestartEE";
    case HookKind::kDiagGcStart:
      return "DiagGCStart";
    case HookKind::kDiagGcEnd:
      return "DiagGCEnd";
  }
  return "";
}

RuntimeHooks LocateHooks(const HookImages& images) { return Locator().Locate(images); }

}  // namespace clrsampler
