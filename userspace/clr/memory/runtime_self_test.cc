#include "clr/memory/runtime_self_test.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace clrsampler {
namespace {

// The test is meant for generic methods, and these are rare. After the plain ones, this many more methods are searched
// for them.
constexpr size_t kMostGeneric = 16;
constexpr size_t kMostLookedAt = 2000;

std::string Text(const MethodName& name) {
  const std::string text = absl::StrCat(name.type, "[", absl::StrJoin(name.type_args, ","), "]::", name.method, "[",
                                        absl::StrJoin(name.method_args, ","), "]");
  return absl::StrReplaceAll(text, {{", ", ","}});
}

}  // namespace

absl::Status CompareWithImage(R2rImage& image, AssemblyOpener& assemblies, std::span<const uint32_t> entry_points,
                              const std::function<std::optional<MethodName>(size_t)>& name_of, size_t most,
                              SelfTestReport& report) {
  size_t plain = 0, looked_at = 0;
  for (size_t i = 0; i < entry_points.size() && looked_at < kMostLookedAt; ++i) {
    if (plain >= most && report.generic_methods >= kMostGeneric) break;
    const std::optional<R2rFunction> function = image.Find(entry_points[i]);
    if (function && function->begin == entry_points[i] && function->part == R2rPart::kResumptionStub) continue;
    if (!function || function->begin != entry_points[i] || function->index != function->method) {
      return absl::FailedPreconditionError("a prepared method begins where its image has none");
    }
    ++looked_at;
    const absl::StatusOr<R2rMethodName> expected = image.Name(function->method, assemblies);
    if (!expected.ok() || expected->method_by_token || expected->types_by_token) continue;
    if (expected->name.module != kCoreLib) continue;  // a composite has methods of all
    const bool generic = !expected->name.method_args.empty();
    if (generic ? report.generic_methods >= kMostGeneric : plain >= most) continue;
    const std::optional<MethodName> actual = name_of(i);
    if (!actual) continue;
    if (Text(*actual) != Text(expected->name)) {
      return absl::FailedPreconditionError(
          absl::StrCat("memory says ", Text(*actual), " where the image says ", Text(expected->name)));
    }
    ++report.compared;
    if (generic) {
      ++report.generic_methods;
    } else {
      ++plain;
    }
    if (!expected->name.type_args.empty()) ++report.generic_types;
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
