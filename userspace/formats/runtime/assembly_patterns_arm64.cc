// Sources: dotnet/runtime, src/coreclr/pal/inc/unixasmmacrosarm64.inc at 0a1ad13b, src/coreclr/vm/arm64 (asmhelpers.S
// at 01c2a186, patchedcode.S at 0f216735, calldescrworkerarm64.S at afa173bb, AllocSlow.S at 110b23b2) and
// src/coreclr/runtime/arm64/AllocFast.S at 09e76ad7. Measured on 9.0.23, 10.0.15 and 11.0.0.
#include "absl/strings/str_cat.h"
#include "formats/runtime/assembly_patterns.h"

namespace clrsampler {
namespace {

// The registers that survive a call, behind the frame record; the same read again.
constexpr absl::string_view kSaved = " 910003fd a90153f3 a9025bf5 a90363f7 a9046bf9 a90573fb";
constexpr absl::string_view kRestored = " a94153f3 a9425bf5 a94363f7 a9446bf9 a94573fb";
std::string Frame() { return absl::StrCat("a9b57bfd", kSaved); }
std::string Leave() { return absl::StrCat(kRestored, " a8cb7bfd"); }

// PROLOG_WITH_TRANSITION_BLOCK, and the block's address as the first argument.
std::string Block() {
  return absl::StrCat(Frame(),
                      " d10203ff f90077e8 a90f07e0 a9100fe2 a91117e4 a9121fe6 ad0007e0 ad010fe2 ad0217e4 ad031fe6",
                      " 910203e0");
}
// The arguments that precompiled code passes: the cell, its section and its module.
constexpr absl::string_view kCell = " aa0b03e1 aa0903e2 aa0a03e3";
std::string DynamicHelper(absl::string_view move_flags) {
  return absl::StrCat(Block(), kCell, " ", move_flags, " 94000000@DynamicHelperWorker b5000140");
}

// NEW_ARRAY_FAST
constexpr absl::string_view kNewArray =
    " a9bf7be0 tlsdesc d53bd043 8b000063 a8c17be0 f940046c f940006d cb0c01ad eb0d005f "
    "54000008@RhpNewVariableSizeObject 8b0c0042 f9000180 f9000581 f9000462 aa0c03e0 d65f03c0";
constexpr absl::string_view kOverflow = " d2800021 14000000@RhExceptionHandling_FailedAllocation end";
// The body of RhpNewObject and RhpNewVariableSizeObject, around what they pass to RhpGcAlloc.
std::string Allocate(absl::string_view arguments) {
  return absl::StrCat(Frame(), " 910003e3 aa0003f3 ", arguments, " 94000000@RhpGcAlloc b4000100", Leave(),
                      " d65f03c0 aa1303e0 d2800001", Leave(), " 14000000@RhExceptionHandling_FailedAllocation end");
}

std::vector<AssemblyPattern> Entries() {
  return {
      {"ThePreStub", absl::StrCat(Block(), " aa0c03e1 94000000@PreStubWorker aa0003e9")},
      {"OnCallCountThresholdReachedStub",
       absl::StrCat(Block(), " aa0903e1 94000000@OnCallCountThresholdReached aa0003e9")},
      {"DelayLoad_MethodCall", absl::StrCat(Block(), kCell, " 94000000@ExternalMethodFixupWorker aa0003ec")},
      {"DelayLoad_Helper", DynamicHelper("d2800004")},
      {"DelayLoad_Helper_Obj", DynamicHelper("d2800024")},
      {"DelayLoad_Helper_ObjObj", DynamicHelper("d2800064")},
      {"ResolveWorkerAsmStub",
       absl::StrCat(Block(), " 927ef561 aa0c03e2 92400563 94000000@VSD_ResolveWorker aa0003e9")},
      {"ResolveWorkerChainLookupAsmStub",
       "f240017f 540002c1 f940000d f9400d29 f100013f 54000240 a9404530 eb0d021f 54ffff61 eb0c023f 54ffff21 x13= "
       "f94001b0 f1000610 f90001b0 5400006b f9400930 d61f0200 d2802010 f90001b0 b27f016b aa0903ec "
       "14000000@ResolveWorkerAsmStub end"},
      // The frame of .NET 9, 10 and 11.
      {"OnHijackTripThread",
       absl::StrCat("a9b57bfd", kSaved, " a90607e0 ad0387e0 ad048fe2 910003e0 94000000@OnHijackWorker a94607e0")},
      {"OnHijackTripThread",
       absl::StrCat("a9b47bfd", kSaved, " a90607e0 f9003be2 ad0407e0 ad050fe2 910003e0 94000000@OnHijackWorker")},
      {"OnHijackTripThread",
       absl::StrCat("a9b37bfd", kSaved, " a90607e0 f9003be2 ad0407e0 ad050fe2 910003e0 94000000@OnHijackWorker")},
      {"CallDescrWorkerInternal",
       "a9be7bfd 910003fd f9000bf3 aa0003f3 b9400a61 340001a1 f9400260 8b010c00 f2400022 540000a0 f85f8c04 f81f0fe4 "
       "f1000421 540000a0 a9ff1002 a9bf13e2 f1000821 54ffffa1"},
  };
}

std::vector<AssemblyPattern> Barriers() {
  return {
      // .NET 9, and 10.
      {"JIT_CheckedWriteBarrier",
       "5800000c@ eb0c01df 5800000c@ fa4c21c2 54000042 14000000@JIT_WriteBarrier f80085cf d65f03c0"},
      {"JIT_CheckedWriteBarrier",
       "5800000c@ 58000011@ eb0c01df fa5121c2 54000042 14000000@JIT_WriteBarrier f80085cf d65f03c0"},
      // A function of the same purpose, but for programs without these barriers, has the other directly behind it.
      {"JIT_ByRefWriteBarrier", "f84085af 14000002"},
  };
}

// Since .NET 10.
std::vector<AssemblyPattern> Allocators() {
  return {
      {"RhpNew", "d2800001 14000000@RhpNewObject end"},
      {"RhpNewFast",
       "a9bf7be0 tlsdesc d53bd043 8b000063 a8c17be0 b9400402 f940046c f940006d cb0c01ad eb0d005f 540000c8 8b0c0042 "
       "f9000180 f9000462 aa0c03e0 d65f03c0 d2800001 14000000@RhpNewObject end"},
      {"RhpNewFinalizable", "d2800021 14000000@RhpNewObject end"},
      {"RhpNewMaybeFrozen",
       absl::StrCat(Frame(), " 910003e2 d2800001 94000000@RhpGcAllocMaybeFrozen", Leave(), " d65f03c0 end")},
      {"RhpNewObject", Allocate("52800002")},
      {"RhNewString",
       absl::StrCat("d29ffbe2 f2a7ffe2 eb02003f 54000308 52800042 d28003a3 9ba20c22 927df042", kNewArray, kOverflow)},
      {"RhpNewArrayFast",
       absl::StrCat("b2407be2 eb02003f 54000308 79400002 9ba27c22 91007c42 927df042", kNewArray, kOverflow)},
      {"RhpNewPtrArrayFast",
       absl::StrCat("d2a10002 eb02003f 54000002@RhpNewArrayFast d37df022 91006042", kNewArray, " end")},
      {"RhpNewVariableSizeObject", Allocate("aa0103e2 d2800001")},
  };
}

}  // namespace

std::vector<AssemblyPattern> Arm64AssemblyPatterns() {
  std::vector<AssemblyPattern> patterns = Entries();
  for (const std::vector<AssemblyPattern>& others : {Barriers(), Allocators()}) {
    patterns.insert(patterns.end(), others.begin(), others.end());
  }
  return patterns;
}

}  // namespace clrsampler
