// Sources: dotnet/runtime, src/coreclr/vm/amd64 (externalmethodfixupthunk.S at 08f41522, theprestubamd64.S at 43942287,
// virtualcallstubamd64.S at 0b7b7b5f, AllocSlow.S at 1faa9e82, unixasmmacrosamd64.inc at 0147c5c8) and
// src/coreclr/runtime/amd64/AllocFast.S at 086bc8e3. Measured on 8.0.30, 9.0.19, 10.0.14 and 11.0.0.
#include "absl/strings/str_cat.h"
#include "formats/runtime/assembly_patterns.h"

namespace clrsampler {
namespace {

// PUSH_ARGUMENT_REGISTERS, and the three forms of PROLOG_WITH_TRANSITION_BLOCK: with nothing, one and two words on the
// stack at the entry.
constexpr absl::string_view kPushArguments = " 41 51 41 50 51 52 56 57";
constexpr absl::string_view kFreeStack = " 48 8d a4 24 .. ff ff ff xmm";
constexpr absl::string_view kBlockAddress = " 48 8d bc 24 .. 00 00 00";  // lea rdi, [rsp + the block]

std::string Block() { return absl::StrCat("55 48 89 e5 53 41 57 41 56 41 55 41 54", kPushArguments, kFreeStack); }
std::string BlockBehindOne() {
  return absl::StrCat("53 41 57 41 56 41 55 41 54", kPushArguments, " 48 8b 54 24 58 48 89 6c 24 58 48 8d 6c 24 58",
                      kFreeStack);
}
std::string BlockBehindTwo() {
  return absl::StrCat("41 57 41 56 41 55 41 54", kPushArguments,
                      " 48 8b 4c 24 50 48 89 5c 24 50 48 8b 54 24 58 48 89 6c 24 58 48 8d 6c 24 58", kFreeStack);
}
std::string DynamicHelper(absl::string_view flags) {
  return absl::StrCat(BlockBehindTwo(), " 49 c7 c0 ", flags, " 00 00 00", kBlockAddress,
                      " 48 89 c6 e8 @DynamicHelperWorker 48 85 c0");
}
// NEW_ARRAY_FAST
constexpr absl::string_view kNewArray =
    " 53 41 54 41 55 48 89 fb 49 89 f4 49 89 c5 tls 48 89 c1 48 8b 41 08 48 8b 39 48 29 c7 49 39 fd 77 14 49 01 c5 48 "
    "89 18 44 89 60 08 4c 89 69 08 41 5d 41 5c 5b c3 48 89 df 4c 89 e6 41 5d 41 5c 5b e9 @RhpNewVariableSizeObject";
// The body of RhpNewObject and RhpNewVariableSizeObject, around what they pass to RhpGcAlloc.
std::string Allocate(absl::string_view arguments) {
  constexpr absl::string_view kLeave = " 48 8d 64 24 38 41 5c 41 5d 41 5e 41 5f 5b 5d";
  return absl::StrCat("55 53 41 57 41 56 41 55 41 54 48 8d 64 24 c8 48 8d 4c 24 08 48 89 fb ", arguments,
                      " e8 @RhpGcAlloc 48 85 c0 74 10", kLeave, " c3 48 89 df 31 f6", kLeave,
                      " e9 @RhExceptionHandling_FailedAllocation end");
}

}  // namespace

std::vector<AssemblyPattern> X64AssemblyPatterns() {
  return {
      // .NET 8, and since 9.
      {"ThePreStub", absl::StrCat(Block(), kBlockAddress, " 4c 89 d6 e8 @PreStubWorker")},
      {"ThePreStub", absl::StrCat(Block(), " 48 89 04 24", kBlockAddress, " 4c 89 d6 e8 @PreStubWorker 49 89 c2")},
      {"OnCallCountThresholdReachedStub",
       absl::StrCat(Block(), kBlockAddress, " 48 89 c6 e8 @OnCallCountThresholdReached")},
      {"DelayLoad_MethodCall",
       absl::StrCat(BlockBehindTwo(), kBlockAddress, " 48 89 c6 e8 @ExternalMethodFixupWorker")},
      {"DelayLoad_Helper", DynamicHelper("00")},
      {"DelayLoad_Helper_Obj", DynamicHelper("01")},
      {"DelayLoad_Helper_ObjObj", DynamicHelper("03")},
      {"ResolveWorkerAsmStub",
       absl::StrCat(BlockBehindOne(), kBlockAddress, " 4c 89 de 48 89 f1 48 83 e1 07 48 29 ce e8 @VSD_ResolveWorker")},
      {"ResolveWorkerChainLookupAsmStub",
       "48 c7 c0 01 00 00 00 4c 21 d8 58 75 .. 48 8b 40 18 48 85 c0 74 .. 48 3b 10 75 .. 4c 3b 50 08 75 .. 48 .. .. "
       ".. .. .. .. 48 83 2a 01 7c .. 48 8b 40 10 5a"},
      // jithelpers_fastwritebarriers.S and jithelpers_fast.S; the latter before 9 and since.
      {"JIT_CheckedWriteBarrier",
       "48 .. 05 .. .. .. .. 48 3b 38 72 12 48 .. 05 .. .. .. .. 48 3b 38 73 06 ff 25 .. .. .. .. 48 89 37 c3"},
      {"JIT_ByRefWriteBarrier",
       "48 8b 0e 48 89 0f 48 .. 05 .. .. .. .. 48 3b 38 0f 82 .. .. 00 00 48 .. 05 .. .. .. .. 48 3b 38 0f 83 .. .. "
       "00 00 48 .. 05 .. .. .. .. 80 38 00 74 19 48 89 f8 48 c1 e8 0c"},
      {"JIT_ByRefWriteBarrier",
       "48 8b 0e 48 89 0f 48 3b 3d .. .. .. .. 0f 82 .. .. 00 00 48 3b 3d .. .. .. .. 0f 83 .. .. 00 00 80 3d .. .. "
       ".. .. 00 74 16 48 89 f8 48 c1 e8 0c"},
      // Since .NET 10.
      {"RhpNew", "48 c7 c6 00 00 00 00 e9 @RhpNewObject end"},
      {"RhpNewFast",
       "53 48 89 fb tls 8b 53 04 48 8b 70 08 48 8b 38 48 29 f7 48 39 fa 77 0f 48 01 f2 48 89 1e 48 89 50 08 48 89 f0 "
       "5b c3 48 89 df 31 f6 5b e9 @RhpNewObject end"},
      {"RhpNewFinalizable", "be 01 00 00 00 e9 @RhpNewObject end"},
      {"RhpNewObject", Allocate("31 d2")},
      {"RhNewString", absl::StrCat("48 81 fe df ff ff 3f 77 60 48 8d 04 75 1d 00 00 00 48 83 e0 f8", kNewArray,
                                   " 31 f6 e9 @RhExceptionHandling_FailedAllocation end")},
      {"RhpNewArrayFast", absl::StrCat("48 81 fe ff ff ff 7f 77 63 0f b7 07 48 0f af c6 48 8d 40 1f 48 83 e0 f8",
                                       kNewArray, " be 01 00 00 00 e9 @RhExceptionHandling_FailedAllocation end")},
      {"RhpNewPtrArrayFast",
       absl::StrCat("48 81 fe 00 00 00 08 0f 83 @RhpNewArrayFast 67 8d 04 f5 18 00 00 00", kNewArray, " end")},
      {"RhpNewVariableSizeObject", Allocate("48 89 f2 48 31 f6")},
  };
}

}  // namespace clrsampler
