#include "formats/runtime/assembly_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "unit/formats/runtime/code_image.h"

namespace clrsampler {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

// Code of .NET 10.0.14 for x64, up to its end or beyond what tells it apart.
constexpr absl::string_view kThePreStub =
    "55 48 89 e5 53 41 57 41 56 41 55 41 54 41 51 41 50 51 52 56 57 48 8d a4 24 68 ff ff ff 66 0f 7f 44 24 10 66 0f 7f "
    "4c 24 20 66 0f 7f 54 24 30 66 0f 7f 5c 24 40 66 0f 7f 64 24 50 66 0f 7f 6c 24 60 66 0f 7f 74 24 70 66 0f 7f bc 24 "
    "80 00 00 00 48 89 04 24 48 8d bc 24 98 00 00 00 4c 89 d6 e8 ac 05 e0 ff 49 89 c2 48 8b 04 24";
constexpr uint64_t kPreStubCall = 96;  // where its distance is
constexpr absl::string_view kDelayLoadMethodCall =
    "41 57 41 56 41 55 41 54 41 51 41 50 51 52 56 57 48 8b 4c 24 50 48 89 5c 24 50 48 8b 54 24 58 48 89 6c 24 58 48 8d "
    "6c 24 58 48 8d a4 24 78 ff ff ff 66 0f 7f 04 24 66 0f 7f 4c 24 10 66 0f 7f 54 24 20 66 0f 7f 5c 24 30 66 0f 7f 64 "
    "24 40 66 0f 7f 6c 24 50 66 0f 7f 74 24 60 66 0f 7f 7c 24 70 48 8d bc 24 88 00 00 00 48 89 c6 e8 80 23 e0 ff 66 0f";
constexpr absl::string_view kRhpNewObject =
    "55 53 41 57 41 56 41 55 41 54 48 8d 64 24 c8 48 8d 4c 24 08 48 89 fb 31 d2 e8 b2 b4 e9 ff 48 85 c0 74 10 48 8d 64 "
    "24 38 41 5c 41 5d 41 5e 41 5f 5b 5d c3 48 89 df 31 f6 48 8d 64 24 38 41 5c 41 5d 41 5e 41 5f 5b 5d e9 24 e6 ff ff";
// As a linker leaves it in a program: a variable of the thread has a fixed place.
constexpr absl::string_view kRhpNewFastOfAProgram =
    "53 48 89 fb 64 48 8b 04 25 00 00 00 00 48 8d 80 10 f0 ff ff 8b 53 04 48 8b 70 08 48 8b 38 48 29 f7 48 39 fa 77 0f "
    "48 01 f2 48 89 1e 48 89 50 08 48 89 f0 5b c3 48 89 df 31 f6 5b e9 10 00 00 00";
constexpr absl::string_view kRhpNew = "48 c7 c6 00 00 00 00 e9 00 00 00 00";
constexpr absl::string_view kAnother = "55 48 89 e5 5d c3";

// Code of .NET 10.0.15 for arm64, the same way.
constexpr absl::string_view kArm64ThePreStub =
    "a9b57bfd 910003fd a90153f3 a9025bf5 a90363f7 a9046bf9 a90573fb d10203ff f90077e8 a90f07e0 a9100fe2 a91117e4 "
    "a9121fe6 ad0007e0 ad010fe2 ad0217e4 ad031fe6 910203e0 aa0c03e1 97f88687 aa0003e9 d65f03c0";
constexpr uint64_t kArm64PreStubCall = 4 * 19;
constexpr absl::string_view kArm64RhpNewFast =
    "a9bf7be0 90000580 f9442403 91212000 d63f0060 d53bd043 8b000063 a8c17be0 b9400402 f940046c f940006d cb0c01ad "
    "eb0d005f 540000c8 8b0c0042 f9000180 f9000462 aa0c03e0 d65f03c0 d2800001 14000003";
constexpr absl::string_view kArm64RhpNew = "d2800001 1400061b";
constexpr absl::string_view kArm64CheckedBarrier =
    "580020cc 580020f1 eb0c01df fa5121c2 54000042 14000004 f80085cf d65f03c0";
constexpr absl::string_view kArm64ChainLookup =
    "f240017f 540002c1 f940000d f9400d29 f100013f 54000240 a9404530 eb0d021f 54ffff61 eb0c023f 54ffff21 $0 f94001b0 "
    "f1000610 f90001b0 5400006b f9400930 d61f0200 d2802010 f90001b0 b27f016b aa0903ec 14000001";

std::map<uint64_t, std::string> NamesIn(const CodeImage& code) {
  return code.With([](const ElfImage& image, const EhFrameTable& unwind) {
    std::map<uint64_t, std::string> names;
    for (const AssemblyFunction& one : FindAssemblyFunctions(image, unwind)) {
      names.emplace(one.start.value, std::string(one.name));
    }
    return names;
  });
}

TEST(AssemblyFunctionsTest, AreToldByTheirInstructionsAndNameWhatTheyCall) {
  CodeImage code;
  const uint64_t worker = code.Add(CodeOf(kAnother)), stub = code.Add(CodeOf(kThePreStub)),
                 load = code.Add(CodeOf(kDelayLoadMethodCall)), object = code.Add(CodeOf(kRhpNewObject)),
                 fast = code.Add(CodeOf(kRhpNewFastOfAProgram)), slow = code.Add(CodeOf(kRhpNew));
  code.Add(CodeOf(kAnother));
  code.Lead(stub + kPreStubCall, worker);
  code.Lead(fast + CodeOf(kRhpNewFastOfAProgram).size() - 4, object);
  code.Lead(slow + 8, object);
  EXPECT_THAT(NamesIn(code), UnorderedElementsAre(Pair(worker, "PreStubWorker"), Pair(stub, "ThePreStub"),
                                                  Pair(load, "DelayLoad_MethodCall"), Pair(object, "RhpNewObject"),
                                                  Pair(fast, "RhpNewFast"), Pair(slow, "RhpNew")));
}

TEST(AssemblyFunctionsTest, OneOtherByteIsAnotherFunction) {
  CodeImage code;
  const uint64_t object = code.Add(CodeOf(kRhpNewObject));
  const size_t bytes = CodeOf(kRhpNewObject).size();
  for (size_t i = 0; i < bytes; ++i) {
    const bool distance = (i >= 26 && i < 30) || i >= bytes - 4;
    CodeImage changed = code;
    changed.Change(object + i);
    EXPECT_EQ(NamesIn(changed).contains(object), distance) << i;
  }
}

TEST(AssemblyFunctionsTest, AFunctionThatGoesOnIsAnother) {
  CodeImage code;
  code.Add(CodeOf(kRhpNewObject) + "\x90");
  const uint64_t stub = code.Add(CodeOf(kThePreStub));
  EXPECT_THAT(NamesIn(code), UnorderedElementsAre(Pair(stub, "ThePreStub"))) << "what follows there is not asked";
}

TEST(AssemblyFunctionsTest, OneThatIsCutShortIsNone) {
  CodeImage code;
  code.Add(CodeOf(kThePreStub).substr(0, kPreStubCall + 4));  // another function begins before the pattern ends
  code.Add(CodeOf(kThePreStub).substr(kPreStubCall + 4));
  EXPECT_TRUE(NamesIn(code).empty());
}

TEST(AssemblyFunctionsTest, TwoOfOneNameHaveNone) {
  CodeImage code;
  code.Add(CodeOf(kThePreStub));
  code.Add(CodeOf(kThePreStub));
  const uint64_t object = code.Add(CodeOf(kRhpNewObject));
  EXPECT_THAT(NamesIn(code), UnorderedElementsAre(Pair(object, "RhpNewObject")));
}

TEST(AssemblyFunctionsTest, AFunctionThatTwoLeadToByOtherNamesHasNone) {
  CodeImage code;
  const uint64_t worker = code.Add(CodeOf(kAnother)), stub = code.Add(CodeOf(kThePreStub)),
                 object = code.Add(CodeOf(kRhpNewObject));
  code.Lead(stub + kPreStubCall, worker);
  code.Lead(object + 26, worker);
  EXPECT_THAT(NamesIn(code), Not(Contains(Key(worker))));
}

TEST(AssemblyFunctionsTest, APlaceInsideAFunctionHasNoName) {
  CodeImage code;
  const uint64_t worker = code.Add(CodeOf(kAnother)), stub = code.Add(CodeOf(kThePreStub));
  code.Lead(stub + kPreStubCall, worker + 1);
  EXPECT_THAT(NamesIn(code), UnorderedElementsAre(Pair(stub, "ThePreStub")));
}

TEST(AssemblyFunctionsTest, ThoseOfOneMachineAreNotLookedForOnAnother) {
  CodeImage arm64(EM_AARCH64), x64;
  arm64.Add(CodeOf(kThePreStub));
  x64.Add(Arm64CodeOf(kArm64ThePreStub));
  EXPECT_TRUE(NamesIn(arm64).empty());
  EXPECT_TRUE(NamesIn(x64).empty());
}

TEST(AssemblyFunctionsTest, Arm64FunctionsAreToldAndNameWhatTheyLeadTo) {
  CodeImage code(EM_AARCH64);
  const uint64_t worker = code.Add(Arm64CodeOf("d65f03c0")), stub = code.Add(Arm64CodeOf(kArm64ThePreStub)),
                 object = code.Add(Arm64CodeOf("d503201f d65f03c0")), slow = code.Add(Arm64CodeOf(kArm64RhpNew)),
                 fast = code.Add(Arm64CodeOf(kArm64RhpNewFast)), checked = code.Add(Arm64CodeOf(kArm64CheckedBarrier)),
                 barrier = code.Add(Arm64CodeOf("00000000"));
  code.LeadArm64(stub + kArm64PreStubCall, worker);
  code.LeadArm64(slow + 4, object);
  code.LeadArm64(fast + 4 * 20, object);
  code.LeadArm64(checked + 4 * 5, barrier);
  EXPECT_THAT(NamesIn(code),
              UnorderedElementsAre(Pair(worker, "PreStubWorker"), Pair(stub, "ThePreStub"), Pair(slow, "RhpNew"),
                                   Pair(object, "RhpNewObject"), Pair(fast, "RhpNewFast"),
                                   Pair(checked, "JIT_CheckedWriteBarrier"), Pair(barrier, "JIT_WriteBarrier")));
}

TEST(AssemblyFunctionsTest, OneOtherArm64InstructionIsAnotherFunction) {
  const size_t pattern = Arm64CodeOf(kArm64ThePreStub).size() / 4 - 1;  // ret is behind it
  for (size_t i = 0; i < pattern; ++i) {
    CodeImage code(EM_AARCH64);
    const uint64_t stub = code.Add(Arm64CodeOf(kArm64ThePreStub));
    code.Change(stub + 4 * i);
    EXPECT_EQ(NamesIn(code).contains(stub), 4 * i == kArm64PreStubCall) << i;
  }
}

TEST(AssemblyFunctionsTest, AnArm64LinkersShorterFormsAreTheSameFunctions) {
  for (const absl::string_view address : {"d000112d 911061ad", "d503201f 106b7ead"}) {  // adrp and add; nop and adr
    CodeImage code(EM_AARCH64);
    const uint64_t chain = code.Add(Arm64CodeOf(absl::Substitute(kArm64ChainLookup, address)));
    const uint64_t worker = code.Add(Arm64CodeOf("d65f03c0"));
    code.LeadArm64(worker - 4, worker);
    EXPECT_THAT(NamesIn(code), UnorderedElementsAre(Pair(chain, "ResolveWorkerChainLookupAsmStub"),
                                                    Pair(worker, "ResolveWorkerAsmStub")))
        << address;
  }
  CodeImage code(EM_AARCH64);
  const uint64_t fast = code.Add(Arm64CodeOf(absl::StrReplaceAll(
      kArm64RhpNewFast, {{"90000580 f9442403 91212000 d63f0060", "d2a00000 f2801800 d503201f d503201f"}})));
  EXPECT_THAT(NamesIn(code), Contains(Pair(fast, "RhpNewFast")));
  CodeImage another(EM_AARCH64);
  another.Add(Arm64CodeOf(absl::Substitute(kArm64ChainLookup, "d000112c 911061ad")));  // adrp x12
  EXPECT_TRUE(NamesIn(another).empty());
}

}  // namespace
}  // namespace clrsampler
