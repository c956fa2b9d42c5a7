#include "formats/runtime/assembly_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

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

TEST(AssemblyFunctionsTest, NothingIsKnownOfOtherMachines) {
  CodeImage code(EM_AARCH64);
  code.Add(CodeOf(kThePreStub));
  EXPECT_TRUE(NamesIn(code).empty());
}

}  // namespace
}  // namespace clrsampler
