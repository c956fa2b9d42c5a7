// Several bodies of code that are one method to the people who wrote it. Since .NET 11 an async method has no state
// machine (runtime async). The runtime compiles a body that returns the result, a thunk that returns a task for callers
// that do not await, and a stub that resumes a suspended body. For a method that is not async the thunk is the other
// way round. In a stack the thunk and the stub stand directly above the body they call, under the same name.
//
// Pure. Source: src/coreclr/vm/method.hpp and asyncthunks.cpp of dotnet/runtime v11.0.0; measured on 11.0.0.
#ifndef CLRSAMPLER_FORMATS_NAMES_ASYNC_BODY_H_
#define CLRSAMPLER_FORMATS_NAMES_ASYNC_BODY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "formats/names/method_name.h"

namespace clrsampler {

// The result of awaiting a task, as CLR text: "System.Int32" of "System.Threading.Tasks.Task`1<System.Int32>",
// "System.Void" of ValueTask. nullopt: not the text of a task, in none of the notations that names come in.
std::optional<std::string> AwaitedResult(absl::string_view return_type);

struct MethodIdentity {
  friend bool operator==(const MethodIdentity&, const MethodIdentity&) = default;

  // Equal for the bodies of one method: of its owner, name, parameters and result. 0: not a method of an assembly.
  uint64_t key = 0;
  AsyncBody body = AsyncBody::kResult;  // never kUnknown
};
MethodIdentity IdentityOf(const MethodName& name);

// Whether the frame of `outer`, which called that of `inner` directly, is a body of the same method that people did not
// write.
bool IsFoldedInto(const MethodIdentity& outer, const MethodIdentity& inner);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_ASYNC_BODY_H_
