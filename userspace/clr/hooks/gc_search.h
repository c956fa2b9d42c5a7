// GCToEEInterface::DiagGCStart(int gen, bool induced) and DiagGCEnd(size_t index, int gen, int reason, bool
// concurrent), by structure. The collector calls each once for every collection, whether anybody listens or not.
//
// The work of the runtime for the collector stands in one table of virtual functions (IGCToCLR: src/coreclr/gc/
// gcinterface.ee.h): slot 0 SuspendEE, 1 RestartEE, 3 GcStartWork, 6 GcDone, 20 DiagGCStart, 22 DiagGCEnd. It has 50
// slots in .NET 8 and 9, 52 in 10, 53 in 11. The way: The way:
//  1. The table: 45 functions or more, the first leads to ThreadSuspend::SuspendEE, the second to RestartEE, directly
//     or by a jump thunk. Exactly one in every image.
//  2. .NET 9 and newer: the slots are jump thunks to static functions that the built-in collector calls too, so one
//     address serves the built-in and a standalone collector. Each thunk moves exactly the arguments that its function
//     has.
//     .NET 8: the slots are bodies, for a standalone collector (`this` is their first argument); the built-in one calls
//     static copies. The copies of GcStartWork and GcDone are the only other functions that call and read the same.
//     Those of DiagGCStart and DiagGCEnd are the only ones that the two callers of the former, and nobody else, call
//     and that share three quarters of what the body refers to.
//  3. GcStartWork and DiagGCStart have the same two callers: garbage_collect of the workstation and of the server
//     collector. So have GcDone and DiagGCEnd: do_post_gc. The two pairs have none in common.
// Measured on 8.0.0 to 11.0.0 on x64, and on 10.0.9 on arm64 (.NET 9's way).
#ifndef CLRSAMPLER_CLR_HOOKS_GC_SEARCH_H_
#define CLRSAMPLER_CLR_HOOKS_GC_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/hooks/image_code.h"

namespace clrsampler {

struct GcCallback {
  FunctionIndex function = 0;
  bool takes_this = false;  // the slot's own body
  std::string evidence;
};

struct GcCallbacks {
  FunctionIndex gc_done = 0;                           // the static function
  std::vector<GcCallback> diag_gc_start, diag_gc_end;  // one or two; the static function first
};

// Precondition: the references are indexed.
absl::StatusOr<GcCallbacks> FindGcCallbacks(const ImageCode& code, FunctionIndex suspend_ee, FunctionIndex restart_ee);

// The functions that call DiagGCEnd: do_post_gc of each collector. Precondition: the references are indexed.
std::vector<FunctionIndex> PostGcFunctions(const ImageCode& code, FunctionIndex diag_gc_end);

// The settings that these functions read on behalf of the static GcDone and DiagGCEnd, by address. There are two where
// both collectors are linked in; which one is in use, the process knows.
absl::StatusOr<std::vector<GcSettings>> FindGcSettings(const ImageCode& code,
                                                       const std::vector<FunctionIndex>& do_post_gc,
                                                       FunctionIndex gc_done, FunctionIndex diag_gc_end);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_GC_SEARCH_H_
