// A managed method in fields, as every source of names delivers it: jitdump and perf-map text, r2rmap rows, metadata.
//
// Texts are the CLR's own ("Ns.Outer`1+Inner", "System.Int32"), never C#. frame_text turns them into what people read.
// Names in metadata may hold any character. So the fields are kept apart and never split again from a joined text.
#ifndef CLRSAMPLER_FORMATS_NAMES_METHOD_NAME_H_
#define CLRSAMPLER_FORMATS_NAMES_METHOD_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace clrsampler {

enum class MethodKind {
  kMethod,         // ordinary IL
  kDynamicMethod,  // DynamicMethod, compiled expression: owner "dynamicClass", no metadata
  kIlStub,         // marshalling and delegate stubs that the runtime writes in IL
  kStub,           // machine-code stub of the runtime; `method` is its description
};

// The part that a body of code is of its method, where the runtime makes several (async_body.h).
enum class AsyncBody : uint8_t {
  kUnknown,         // the source does not tell; by its return type it is kResult or kTask
  kResult,          // returns what the method's code returns
  kTask,            // returns a task: a method that is not async, a state machine's start, or a thunk
  kThunk,           // calls the body that people wrote
  kResumptionStub,  // restores what was suspended and calls the body
};

struct MethodName {
  MethodKind kind = MethodKind::kMethod;
  std::string module;  // simple assembly name, "System.Private.CoreLib"; empty: unknown
  std::string type;    // full CLR name of the owner without arguments, nested types with '+'; may be empty
  std::vector<std::string> type_args;    // CLR texts of the owner's generic arguments, "System.Int32", "System.__Canon"
  std::string method;                    // metadata name: "MoveNext", ".ctor", "<Main>b__0_1", "get_Count"
  std::vector<std::string> method_args;  // generic arguments of the method; runtime maps never carry them
  std::optional<std::vector<std::string>> parameters;  // CLR texts of the parameter types; nullopt: unknown
  std::string return_type;                             // CLR text; empty: unknown or constructor
  AsyncBody async_body = AsyncBody::kUnknown;
  std::string tier;  // "QuickJitted", "OptimizedTier1", "PreJIT", ...; empty: unknown
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_METHOD_NAME_H_
