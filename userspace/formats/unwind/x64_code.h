// Reads what single pieces of compiled x86-64 code do with the stack: prologues, epilogues, and the first instructions
// of funclets. Only the instructions that CoreCLR's JIT and crossgen2 write there are known (src/coreclr/jit/
// codegencommon.cpp and codegenxarch.cpp, .NET 8 to 10). Anything else ends the reading.
//
// Unwind data is the better witness of prologues (unwind_info.h): it also covers methods that were entered in the
// middle (on-stack replacement). Prologue bytes are the second witness, and agree in all functions of the shipped
// frameworks (tools/unwind_check). Only the code itself knows of epilogues.
#ifndef CLRSAMPLER_FORMATS_UNWIND_X64_CODE_H_
#define CLRSAMPLER_FORMATS_UNWIND_X64_CODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "formats/unwind/unwind_info.h"

namespace clrsampler {

enum class PrologueEnd : uint8_t {
  kFrame,  // the frame pointer was set: the last code
  kBody,   // by an instruction that belongs to no prologue
  kBytes,  // there are no more bytes, or more than prologues have
};

struct Prologue {
  absl::InlinedVector<UnwindCode, 8> codes;  // the first action of the prologue first
  size_t bytes = 0;                          // where the instruction behind it begins
  PrologueEnd end = PrologueEnd::kBytes;
};

// `code` begins with the function. Methods compiled for on-stack replacement begin differently, and are misread.
Prologue DecodePrologue(std::span<const std::byte> code);

// Funclets of .NET 8 and 9 have a frame of their own, save rbp in it and then take their parent's. How many bytes of
// code are done once rbp is the parent's; nullopt: it is no such funclet. Those of .NET 10 run on their parent's rbp
// from the first instruction on, and nothing tells them from other functions.
std::optional<size_t> FuncletFrameReady(std::span<const std::byte> code);

struct Epilogue {
  enum class Kind : uint8_t {
    kNone,         // what follows is no epilogue
    kLeaves,       // to its caller: the registers below are as in there
    kMissingWord,  // it is one, but the word at `missing` is not known
  };
  Kind kind = Kind::kNone;
  bool pops_rbp = false;
  uint64_t ip = 0, sp = 0, rbp = 0;
  uint64_t missing = 0;
};

using StackWords = absl::FunctionRef<std::optional<uint64_t>(uint64_t address)>;

// Follows the instructions from `offset` on, if they are an epilogue or the rest of one: at most 14, up to a return or
// a jump to another function. `code` begins with the function, whose size is `function_bytes`: a jump out of it, or to
// its first byte, is a tail call.
Epilogue FollowEpilogue(std::span<const std::byte> code, uint64_t function_bytes, size_t offset, uint64_t sp,
                        uint64_t rbp, StackWords words);

// Whether the last bytes of `code` may be an instruction that calls; others that end like one are not told from it.
struct CallEnd {
  bool may_call = false;
  std::optional<int32_t> distance;  // from behind it to what it calls; nullopt: by a register or by memory, or not sure
};
CallEnd DecodeCallEnd(std::span<const std::byte> code);
constexpr size_t kMaxCallBytes = 7;  // without prefixes

// Follows a stub that resolves an interface call (src/coreclr/vm/amd64/virtualcallstubcpu.hpp, .NET 8 to 10) from
// `code`, the instruction that was to be executed next, to the jump out of it. The answer is how many words it has
// pushed so far, at most 2. nullopt: it is no such stub, or `code` is cut.
std::optional<uint32_t> WordsPushedByResolveStub(std::span<const std::byte> code);
constexpr size_t kMaxResolveStubBytes = 112;

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_UNWIND_X64_CODE_H_
