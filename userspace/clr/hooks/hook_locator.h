// Where probes go in a .NET runtime: the functions that suspend and resume it, that begin and end a garbage collection,
// and that compile a method. Pure: images in, addresses with their evidence out.
//
// A probe inside an instruction kills the process that runs into it. Therefore
//  - an address is given only if a function of the unwind table begins there (function_table.h: in order, without
//    overlaps, one place in the file; in NativeAOT programs also by symbols of exactly that build). Its first
//    instructions must set up a frame as the compiler of the runtimes does: push rbp; mov rbp, rsp on x64, storing the
//    frame record on arm64. Nothing else is accepted, endbr64 neither;
//  - which function it is, independent pieces of evidence must agree upon: by symbols where there are some, and by
//    structure (jit_search.h, suspend_search.h, gc_search.h). Where there are both, they must say the same;
//  - in doubt nothing is given, and the error names the evidence that failed.
// docs/hooks.md has the evidence, and docs/measurements/2026-11-27-places-of-hooks.md the addresses for each version.
//
// Known: .NET 8.0.0 to 11.0.0, libcoreclr.so with libclrjit.so and single-file hosts, on x64; single-file hosts on
// arm64; NativeAOT with its debug file.
#ifndef CLRSAMPLER_CLR_HOOKS_HOOK_LOCATOR_H_
#define CLRSAMPLER_CLR_HOOKS_HOOK_LOCATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/hooks/code_reference.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

enum class HookKind : uint8_t {
  // CorJitResult ICorJitCompiler::compileMethod(this, ICorJitInfo*, CORINFO_METHOD_INFO*, u32 flags, u8** entry,
  // u32* bytes). Each method that is compiled, once; not what is inlined into it.
  kCompileMethod,
  // void SuspendEE(reason): ThreadSuspend's, or GCToEEInterface's in NativeAOT programs. The reasons of a collection
  // (1, and 6 for its preparation) are the same in both.
  kSuspendEE,
  // void RestartEE(bool finished_gc, ...): ThreadSuspend's has a second argument, suspend_succeeded; that of NativeAOT
  // programs, GCToEEInterface's, has not.
  kRestartEE,
  // void GCToEEInterface::DiagGCStart(i32 generation, bool induced)
  kDiagGcStart,
  // void GCToEEInterface::DiagGCEnd(u64 gc_index, i32 generation, i32 reason, bool concurrent)
  kDiagGcEnd,
};
constexpr size_t kHookKinds = 5;
absl::string_view HookKindText(HookKind kind);  // "compileMethod"

enum class HookImage : uint8_t {
  kRuntime,  // libcoreclr.so, the single-file host, the NativeAOT program
  kJit,      // libclrjit.so
};

// One address to probe. It holds for exactly the bytes it was found in.
struct HookPoint {
  HookKind kind = HookKind::kCompileMethod;
  HookImage image = HookImage::kRuntime;
  VirtualAddress address;      // before relocation
  FileOffset offset;           // what a uprobe takes
  uint8_t argument_shift = 0;  // 1: `this` comes before the arguments listed at HookKind (compileMethod lists its own)
  // By the image's own bytes. Else symbols alone name it: a return probe there could end the process, if they are
  // wrong.
  bool proven_by_code = false;
  std::string evidence;  // half a sentence, for doctor and reports
};

// At least one point: a hook has several where one event can go through either of several functions, of which each
// process uses one. .NET 8 has two for each DiagGC: of the built-in collector and of a standalone one.
using HookPoints = absl::StatusOr<std::vector<HookPoint>>;

// Where to see that compileMethod is done, with its results.
//
// Never by a return probe. Exceptions of the runtime pass through compileMethod (a method that uses an assembly which
// is missing), and the C++ unwinder does not know the address that a return probe leaves on the stack. The process ends
// with "terminate called after throwing an instance of 'PAL_SEHException'" (8.0.30, 9.0.19, 10.0.14).
//
// Instead an ordinary probe goes to the conditional jump, two bytes on x64, that ends the check of the stack's guard.
// It is the only address that is not a function's first: it is given only if all instructions of the function, from
// first to last, are the known ones. The kernel emulates this jump. Compilations that end in an exception do not come
// by. There the results are stored, the frame still stands, and registers hold:
//   x64: eax CorJitResult, r12 ICorJitInfo*, r15 CORINFO_METHOD_INFO*, r14 u32* bytes; CompileForm: u8** entry, flags
//   arm64: w0, x22, x21, x20
struct JitReturn {
  HookImage image = HookImage::kJit;
  VirtualAddress address;
  FileOffset offset;
  CompileForm form = CompileForm::kEntryInRegister;
};

struct RuntimeHooks {
  std::array<HookPoints, kHookKinds> points;  // by HookKind; errors are a sentence with a hint
  const HookPoints& operator[](HookKind kind) const { return points[static_cast<size_t>(kind)]; }

  // The GUID of the interface between runtime and JIT, "7a8cbc56-9e19-4321-80b9-a0d2c578c945"; empty: not found.
  std::string jit_interface;
  absl::StatusOr<JitReturn> jit_return;
  // The collector's settings of the collection at hand, before relocation, to be read as DiagGCEnd is entered. The
  // entry is the one whose gc_index is DiagGCEnd's. One or two: of the workstation and the server collector, in no
  // known order. A standalone collector has its own, which are not found.
  absl::StatusOr<std::vector<GcSettings>> gc_settings;
};

// Null: there is none, or it can't be read; what would be in it is then refused.
struct HookImages {
  const ElfImage* runtime = nullptr;
  const ElfImage* runtime_debug = nullptr;  // its separate debug file
  const ElfImage* jit = nullptr;            // of a libcoreclr.so
  const ElfImage* jit_debug = nullptr;
};

// Looks at every function once: 20 to 35 ms of CPU time and 3 MB of memory for a runtime (tests/bench/hooks_bench).
// Images that come from mapped files may turn to zeroes while they are read: ask MappedFile::damaged() before the
// result is used.
RuntimeHooks LocateHooks(const HookImages& images);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_HOOK_LOCATOR_H_
