#include "clr/hooks/exception_search.h"

#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "clr/hooks/exception_scan_x64.h"
#include "clr/hooks/image_code.h"
#include "clr/runtime_image.h"
#include "formats/runtime/runtime_functions.h"
#include "status/status.h"

namespace clrsampler {
namespace {

struct FoundThrow {
  FunctionIndex function = 0;
  ExceptionForm form = ExceptionForm::kFrameIterator;
  std::string evidence;
};

// kNotFound: the runtime has no such entry points.
absl::StatusOr<FoundThrow> FindEntryPoint(const ElfImage& runtime, const ImageCode& code) {
  const absl::StatusOr<RuntimeFunctions> functions = RuntimeFunctions::Read(runtime);
  if (!functions.ok()) return Annotate(functions.status(), "the runtime's entry points can't be told");
  const RuntimeFunction* init = nullptr;
  const RuntimeFunction* next = nullptr;
  for (const RuntimeFunction& one : functions->all()) {
    if (one.table != RuntimeTableKind::kEntryPoints) continue;
    if (one.name == "SfiInit") init = &one;
    if (one.name == "SfiNext") next = &one;
  }
  if (init == nullptr || next == nullptr) return absl::NotFoundError("no entry point is called SfiInit");
  const std::optional<FunctionIndex> function = code.functions().StartingAt(init->start);
  if (!function) return absl::FailedPreconditionError("no function begins at the entry point SfiInit");
  return FoundThrow{*function, ExceptionForm::kFrameIterator, "the runtime's table of entry points calls it SfiInit"};
}

absl::StatusOr<FoundThrow> FindReport(const ImageCode& code) {
  if (code.image().machine() != ElfMachine::kX64) {
    return absl::NotFoundError("no entry point is called SfiInit, and the code of .NET 8 is known on x64 only");
  }
  std::optional<FoundThrow> found;
  for (FunctionIndex function = 0; function < code.functions().size(); ++function) {
    const auto reader = x64::ObjectReaderOfReport(code.Code(function), code.Start(function));
    const auto callee = reader ? code.functions().StartingAt(*reader) : std::nullopt;
    if (!callee || !x64::ReadsObjectOfTracker(code.Code(*callee))) continue;
    if (found) return absl::FailedPreconditionError("more than one function reports exceptions");
    found = FoundThrow{function, ExceptionForm::kEvent,
                       "it tests the keywords of exceptions, and asks the thread's tracker for the object"};
  }
  if (!found) return absl::NotFoundError("nothing tests the keywords of exceptions and asks for the object");
  return *std::move(found);
}

absl::StatusOr<ExceptionPoint> ThrowIn(const ElfImage& runtime) {
  const RuntimeImageKind kind = ReadRuntimeImage(runtime).kind;
  if (kind != RuntimeImageKind::kCoreClr && kind != RuntimeImageKind::kSingleFileHost) {
    return absl::UnimplementedError("where a NativeAOT program throws exceptions is not known");
  }
  const absl::StatusOr<ImageCode> code = ImageCode::Read(runtime);
  if (!code.ok()) return Annotate(code.status(), "the runtime's functions can't be told");
  absl::StatusOr<FoundThrow> found = FindEntryPoint(runtime, *code);
  if (absl::IsNotFound(found.status())) found = FindReport(*code);
  if (!found.ok()) return found.status();
  ExceptionPoint point{.address = code->Start(found->function),
                       .offset = code->functions().Offset(found->function),
                       .form = found->form,
                       .evidence = found->evidence};
  if (!code->BeginsWithFrame(found->function)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the function at ", AddressText(point.address), " sets up its frame in no known way"));
  }
  if (runtime.ToOffset(point.address) != point.offset || runtime.ToAddress(point.offset) != point.address) {
    return absl::DataLossError(
        absl::StrCat("the address ", AddressText(point.address), " has no one place in the file"));
  }
  return point;
}

}  // namespace

absl::StatusOr<ExceptionPoint> LocateExceptions(const ElfImage& runtime) {
  absl::StatusOr<ExceptionPoint> point = ThrowIn(runtime);
  if (!point.ok()) return WithHint(point.status(), kUnknownBuild);
  return point;
}

}  // namespace clrsampler
