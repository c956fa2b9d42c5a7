#include "formats/names/async_body.h"

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "formats/names/frame_text.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kTasks = "System.Threading.Tasks.";

}  // namespace

std::optional<std::string> AwaitedResult(absl::string_view return_type) {
  if (!absl::ConsumePrefix(&return_type, "class ")) absl::ConsumePrefix(&return_type, "valuetype ");
  if (absl::StartsWith(return_type, "[")) {  // the assembly
    const size_t end = return_type.find(']');
    if (end == absl::string_view::npos) return std::nullopt;
    return_type.remove_prefix(end + 1);
  }
  if (!absl::ConsumePrefix(&return_type, kTasks)) return std::nullopt;
  absl::ConsumePrefix(&return_type, "Value");
  if (!absl::ConsumePrefix(&return_type, "Task")) return std::nullopt;
  if (return_type.empty()) return "System.Void";
  if (!absl::ConsumePrefix(&return_type, "`1") || return_type.size() < 3) return std::nullopt;
  const char open = return_type.front(), close = return_type.back();
  if (!(open == '<' && close == '>') && !(open == '[' && close == ']')) return std::nullopt;
  return std::string(return_type.substr(1, return_type.size() - 2));
}

MethodIdentity IdentityOf(const MethodName& name) {
  MethodIdentity identity;
  if (name.kind == MethodKind::kIlStub && name.method == kAsyncResumeStub) identity.body = AsyncBody::kResumptionStub;
  if (name.kind != MethodKind::kMethod || name.type.empty()) return identity;
  const std::optional<std::string> awaited = AwaitedResult(name.return_type);
  identity.key = absl::HashOf(SignatureText(name, awaited.value_or(name.return_type)));
  if (identity.key == 0) identity.key = 1;
  if (name.async_body != AsyncBody::kUnknown) {
    identity.body = name.async_body;
  } else if (awaited.has_value()) {
    identity.body = AsyncBody::kTask;
  }
  return identity;
}

bool IsFoldedInto(const MethodIdentity& outer, const MethodIdentity& inner) {
  // A stub that the JIT compiles does not say of which method it is; it calls nothing else.
  if (outer.body == AsyncBody::kResumptionStub && outer.key == 0) return inner.key != 0;
  if (outer.key == 0 || outer.key != inner.key) return false;
  switch (outer.body) {
    case AsyncBody::kResumptionStub:
      return inner.body != AsyncBody::kResumptionStub;
    case AsyncBody::kThunk:
      return inner.body == AsyncBody::kResult || inner.body == AsyncBody::kTask;
    case AsyncBody::kTask:
      return inner.body == AsyncBody::kResult;
    case AsyncBody::kResult:
    case AsyncBody::kUnknown:
      break;
  }
  return false;
}

}  // namespace clrsampler
