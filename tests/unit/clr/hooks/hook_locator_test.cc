#include "clr/hooks/hook_locator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "formats/byte_reader.h"
#include "status/status.h"
#include "unit/clr/hooks/fake_runtime.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using Callbacks = FakeRuntime::Callbacks;

constexpr ElfMachine kMachines[] = {ElfMachine::kX64, ElfMachine::kArm64};
constexpr HookKind kAllKinds[] = {HookKind::kCompileMethod, HookKind::kSuspendEE, HookKind::kRestartEE,
                                  HookKind::kDiagGcStart, HookKind::kDiagGcEnd};

// Parsed images keep the bytes they were made of.
struct Image {
  explicit Image(std::string content) : bytes(std::move(content)) {
    auto parsed = ElfImage::Parse(AsBytes(bytes));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    if (parsed.ok()) image = *std::move(parsed);
  }
  Image(const Image&) = delete;
  const ElfImage* get() const { return image ? &*image : nullptr; }
  std::string bytes;
  std::optional<ElfImage> image;
};

RuntimeHooks Locate(FakeRuntime& runtime) {
  const Image image(runtime.Build());
  return LocateHooks({.runtime = image.get()});
}
RuntimeHooks LocateJit(FakeRuntime& jit) {
  const Image image(jit.Build());
  return LocateHooks({.jit = image.get()});
}

struct Expected {
  std::string function;
  int shift = 0;
};

void ExpectFound(const RuntimeHooks& hooks, HookKind kind, const FakeRuntime& runtime, std::vector<Expected> expected) {
  ASSERT_TRUE(hooks[kind].ok()) << HookKindText(kind) << ": " << hooks[kind].status();
  const std::vector<HookPoint>& points = *hooks[kind];
  ASSERT_EQ(points.size(), expected.size()) << HookKindText(kind);
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].kind, kind);
    EXPECT_EQ(points[i].address.value, runtime.At(expected[i].function)) << HookKindText(kind);
    EXPECT_EQ(points[i].offset.value, runtime.Offset(expected[i].function));
    EXPECT_NE(points[i].offset.value, points[i].address.value);
    EXPECT_EQ(points[i].argument_shift, expected[i].shift);
    EXPECT_FALSE(points[i].evidence.empty());
  }
}

void ExpectRefused(const RuntimeHooks& hooks, HookKind kind, const std::string& why) {
  ASSERT_FALSE(hooks[kind].ok()) << HookKindText(kind);
  EXPECT_THAT(std::string(hooks[kind].status().message()), HasSubstr(why)) << HookKindText(kind);
  EXPECT_NE(HintOf(hooks[kind].status()), "") << HookKindText(kind);
}

// Each machine and both ways of calling back.
class HookLocatorTest : public testing::TestWithParam<std::tuple<ElfMachine, Callbacks>> {
 protected:
  ElfMachine machine() const { return std::get<0>(GetParam()); }
  FakeRuntime runtime_ = FakeRuntime::CoreClr(std::get<0>(GetParam()), std::get<1>(GetParam()));

  // The damage is to `kind` only, or to what depends on it.
  void ExpectOnlyRefused(std::vector<HookKind> refused, const std::string& why) {
    const RuntimeHooks hooks = Locate(runtime_);
    for (const HookKind kind : kAllKinds) {
      if (kind == HookKind::kCompileMethod) continue;
      if (std::find(refused.begin(), refused.end(), kind) != refused.end()) {
        ExpectRefused(hooks, kind, why);
      } else {
        EXPECT_TRUE(hooks[kind].ok()) << HookKindText(kind) << ": " << hooks[kind].status();
      }
    }
  }
  void ExpectSuspendRefused(const std::string& why) {
    ExpectOnlyRefused({HookKind::kSuspendEE, HookKind::kDiagGcStart, HookKind::kDiagGcEnd}, why);
  }
  void ExpectCollectionsRefused(const std::string& why) {
    ExpectOnlyRefused({HookKind::kDiagGcStart, HookKind::kDiagGcEnd}, why);
  }
};
INSTANTIATE_TEST_SUITE_P(All, HookLocatorTest,
                         testing::Combine(testing::ValuesIn(kMachines),
                                          testing::Values(Callbacks::kBodies, Callbacks::kThunks)));

TEST_P(HookLocatorTest, FindsAllInARuntimeOfTwoFiles) {
  FakeRuntime jit = FakeRuntime::Jit(machine());
  const Image runtime_image(runtime_.Build()), jit_image(jit.Build());
  const RuntimeHooks hooks = LocateHooks({.runtime = runtime_image.get(), .jit = jit_image.get()});
  ExpectFound(hooks, HookKind::kCompileMethod, jit, {{"compileMethod"}});
  EXPECT_EQ(hooks[HookKind::kCompileMethod]->front().image, HookImage::kJit);
  EXPECT_EQ(hooks.jit_interface, "7a8cbc56-9e19-4321-80b9-a0d2c578c945");
  ASSERT_TRUE(hooks.jit_return.ok()) << hooks.jit_return.status();
  EXPECT_EQ(hooks.jit_return->image, HookImage::kJit);
  const uint64_t jump = machine() == ElfMachine::kX64 ? 0xa0 : 0xa8;
  EXPECT_EQ(hooks.jit_return->address.value, jit.At("compileMethod") + jump);
  EXPECT_EQ(hooks.jit_return->offset.value, jit.Offset("compileMethod") + jump);
  EXPECT_EQ(hooks.jit_return->form, CompileForm::kEntryInRegister);

  ExpectFound(hooks, HookKind::kSuspendEE, runtime_, {{"SuspendEE"}});
  EXPECT_EQ(hooks[HookKind::kSuspendEE]->front().image, HookImage::kRuntime);
  ExpectFound(hooks, HookKind::kRestartEE, runtime_, {{"RestartEE"}});
  std::vector<Expected> start = {{"DiagGCStart"}}, end = {{"DiagGCEnd"}};
  if (std::get<1>(GetParam()) == Callbacks::kBodies) {
    start.push_back({"slot:20", 1});
    end.push_back({"slot:22", 1});
  }
  ExpectFound(hooks, HookKind::kDiagGcStart, runtime_, start);
  ExpectFound(hooks, HookKind::kDiagGcEnd, runtime_, end);
  ASSERT_TRUE(hooks.gc_settings.ok()) << hooks.gc_settings.status();
  ASSERT_EQ(hooks.gc_settings->size(), 2u);
  EXPECT_EQ((*hooks.gc_settings)[0].at.value, FakeRuntime::kSettings[0]);
  EXPECT_EQ((*hooks.gc_settings)[1].at.value, FakeRuntime::kSettings[1]);
}

TEST_P(HookLocatorTest, FindsAllInASingleFileHost) {
  FakeRuntime host = FakeRuntime::Host(machine(), std::get<1>(GetParam()));
  const RuntimeHooks hooks = Locate(host);
  ExpectFound(hooks, HookKind::kCompileMethod, host, {{"compileMethod"}});
  EXPECT_EQ(hooks[HookKind::kCompileMethod]->front().image, HookImage::kRuntime);
  ASSERT_TRUE(hooks.jit_return.ok()) << hooks.jit_return.status();
  EXPECT_EQ(hooks.jit_return->image, HookImage::kRuntime);
  ExpectFound(hooks, HookKind::kSuspendEE, host, {{"SuspendEE"}});
  ExpectFound(hooks, HookKind::kRestartEE, host, {{"RestartEE"}});
  EXPECT_TRUE(hooks[HookKind::kDiagGcStart].ok() && hooks[HookKind::kDiagGcEnd].ok() && hooks.gc_settings.ok());
}

// --- SuspendEE and RestartEE ---

TEST_P(HookLocatorTest, WithoutTracepointsNothingSuspends) {
  runtime_.tracepoints.clear();
  const RuntimeHooks hooks = Locate(runtime_);
  ExpectRefused(hooks, HookKind::kSuspendEE, "no tracepoint sections");
  ExpectRefused(hooks, HookKind::kRestartEE, "no tracepoint sections");
  ExpectRefused(hooks, HookKind::kDiagGcStart, "told by SuspendEE, which is not found");
  EXPECT_FALSE(hooks.gc_settings.ok());
}

TEST_P(HookLocatorTest, TracepointsOfNewerLttng) {
  const RuntimeHooks before = Locate(runtime_);
  runtime_.providers_apart = true;
  const RuntimeHooks hooks = Locate(runtime_);
  ExpectFound(hooks, HookKind::kSuspendEE, runtime_, {{"SuspendEE"}});
  ExpectFound(hooks, HookKind::kRestartEE, runtime_, {{"RestartEE"}});
  for (const HookKind kind : {HookKind::kDiagGcStart, HookKind::kDiagGcEnd}) {
    ASSERT_TRUE(hooks[kind].ok() && before[kind].ok()) << hooks[kind].status();
    EXPECT_EQ(hooks[kind]->front().address, before[kind]->front().address);
  }
}

TEST_P(HookLocatorTest, ATracepointOfAnotherProvider) {
  runtime_.providers_apart = true;
  for (std::string& name : runtime_.tracepoints) {
    if (name == FakeRuntime::kSuspendEnd) name = "DotNETRuntimeStress:GCSuspendEEEnd_V1";
  }
  ExpectSuspendRefused("of another provider");
}

TEST_P(HookLocatorTest, ATracepointThatNamesNoProvider) {
  runtime_.providers_apart = true;
  runtime_.change_relocations = [](auto& rows) { rows.erase(rows.begin() + 8); };  // of GCSuspendEEBegin_V1
  ExpectSuspendRefused("of another provider");
}

TEST_P(HookLocatorTest, BlankedTracepointNames) {
  runtime_.change_image = [](LinkedImage& image) {
    std::string& names = image.Find("__tracepoints_strings")->bytes;
    names.assign(names.size(), '\0');
  };
  const RuntimeHooks hooks = Locate(runtime_);
  ExpectRefused(hooks, HookKind::kSuspendEE, "no tracepoint is named DotNETRuntime:GCSuspendEEBegin_V1");
  ExpectRefused(hooks, HookKind::kRestartEE, "no tracepoint is named DotNETRuntime:GCRestartEEBegin_V1");
}

TEST_P(HookLocatorTest, ANameIsNoPartOfAnother) {
  for (std::string& name : runtime_.tracepoints) {
    if (name == FakeRuntime::kSuspendEnd) name = "x" + name + "_V2";
  }
  ExpectSuspendRefused("no tracepoint is named DotNETRuntime:GCSuspendEEEnd_V1");
}

TEST_P(HookLocatorTest, ANameThatIsThereTwice) {
  runtime_.tracepoints.push_back(FakeRuntime::kSuspendBegin);
  ExpectSuspendRefused("two tracepoints are named");
}

TEST_P(HookLocatorTest, ATracepointWithoutAName) {
  runtime_.change_relocations = [](auto& rows) {
    rows.erase(rows.begin() + 4);  // GCSuspendEEBegin_V1
  };
  ExpectSuspendRefused("no tracepoint has the name");
}

TEST_P(HookLocatorTest, TwoTracepointsWithOneName) {
  runtime_.change_relocations = [](auto& rows) {
    rows.emplace_back(rows[2].first, rows[4].second), rows.erase(rows.begin() + 2);
  };
  ExpectSuspendRefused("two tracepoints have the name");
}

TEST_P(HookLocatorTest, AStateThatNobodyReads) {
  for (const char* how : {"enabled:", "fire:"}) {
    runtime_.Define(std::string(how) + FakeRuntime::kSuspendEnd,
                    [](Assembly& a, const FakeRuntime&) { a.Frame().Return(); });
  }
  ExpectSuspendRefused("is read by 0 functions");
}

TEST_P(HookLocatorTest, AStateThatManyRead) {
  runtime_.Define("reader", [](Assembly& a, const FakeRuntime&) {
    a.Frame().Read(FakeRuntime::kPoints + 3 * FakeRuntime::kPointBytes + 8).Return();
  });
  ExpectSuspendRefused("is read by 3 functions");
}

TEST_P(HookLocatorTest, AnEventThatTwoFunctionsFire) {
  runtime_.DefineFiring("another", {FakeRuntime::kSuspendEnd});
  ExpectSuspendRefused("is fired by 2 functions");
}

TEST_P(HookLocatorTest, AnEventThatNobodyFires) {
  runtime_.DefineFiring("SuspendEE", {FakeRuntime::kSuspendBegin});
  ExpectSuspendRefused("is fired by 0 functions");
}

TEST_P(HookLocatorTest, BeginAndEndInTwoFunctions) {
  runtime_.DefineFiring("SuspendEE", {FakeRuntime::kSuspendBegin});
  runtime_.DefineFiring("another", {FakeRuntime::kSuspendEnd});
  ExpectSuspendRefused("are fired by two functions");
}

TEST_P(HookLocatorTest, OneFunctionCantBeBoth) {
  runtime_.DefineFiring("SuspendEE", {FakeRuntime::kSuspendBegin, FakeRuntime::kSuspendEnd, FakeRuntime::kRestartBegin,
                                      FakeRuntime::kRestartEnd});
  runtime_.Define("RestartEE", [](Assembly& a, const FakeRuntime&) { a.Frame().Return(); });
  const RuntimeHooks hooks = Locate(runtime_);
  ExpectRefused(hooks, HookKind::kSuspendEE, "also found for another hook");
  ExpectRefused(hooks, HookKind::kRestartEE, "also found for another hook");
  ExpectRefused(hooks, HookKind::kDiagGcStart, "also found for another hook");
  ExpectRefused(hooks, HookKind::kDiagGcEnd, "also found for another hook");
}

TEST_P(HookLocatorTest, APatchedPrologue) {
  runtime_.Patch("SuspendEE", "\xcc");
  ExpectSuspendRefused(machine() == ElfMachine::kX64 ? "begins with cc4889e5" : "begins with cc7bbfa9");
}

TEST(HookLocatorPrologueTest, OnX64NothingButAFrame) {
  const std::string others[] = {{"\xf3\x0f\x1e\xfa\x55", 5},  // endbr64; push rbp
                                {"\x48\x83\xec\x08", 4},      // sub rsp, 8
                                {"\x53\x48\x89\xe5", 4},      // push rbx
                                {"\x55\x48\x8b\xec", 4},      // as compilers of Windows write it
                                {"\x90\x55\x48\x89\xe5", 5},  //
                                {"\xe9\x00\x00\x00\x00", 5},  // hot-patched
                                {"\x00\x00\x00\x00\x00\x00", 6}};
  for (const std::string& other : others) {
    FakeRuntime runtime = FakeRuntime::CoreClr(ElfMachine::kX64, Callbacks::kThunks);
    runtime.Patch("RestartEE", other);
    const RuntimeHooks hooks = Locate(runtime);
    ExpectRefused(hooks, HookKind::kRestartEE, "is no known way to set up a frame");
    EXPECT_TRUE(hooks[HookKind::kSuspendEE].ok());
  }
}

TEST_P(HookLocatorTest, AFunctionThatTheUnwindTableLacks) {
  runtime_.not_in_unwind_table = "SuspendEE";
  ExpectSuspendRefused("is fired by 0 functions");
}

// --- DiagGCStart and DiagGCEnd ---

TEST_P(HookLocatorTest, ATableThatIsTooShort) {
  for (size_t i = 44; i < FakeRuntime::kCallbackSlots; ++i)
    runtime_.pointers.erase(FakeRuntime::kCallbackTable + 8 * i);
  ExpectCollectionsRefused("no table of 45 functions");
}

TEST_P(HookLocatorTest, ATableThatBeginsInAnother) {
  runtime_.pointers[FakeRuntime::kCallbackTable - 8] = "initialize";
  ExpectCollectionsRefused("no table of 45 functions");
}

TEST_P(HookLocatorTest, ATableThatDoesNotRestart) {
  runtime_.pointers[FakeRuntime::kCallbackTable + 8] = "initialize";
  ExpectCollectionsRefused("no table of 45 functions");
}

TEST_P(HookLocatorTest, TwoTables) {
  for (size_t i = 0; i < FakeRuntime::kCallbackSlots; ++i) {
    runtime_.pointers[FakeRuntime::kCallbackTable + 0x500 + 8 * i] = FakeRuntime::Slot(i);
  }
  ExpectCollectionsRefused("two tables");
}

TEST_P(HookLocatorTest, AThirdCollector) {
  runtime_.DefineCalls("garbage_collect:2", {"GcStartWork", "DiagGCStart"});
  ExpectCollectionsRefused("GcStartWork has 3 callers");
}

TEST_P(HookLocatorTest, ACollectorThatDoesBoth) {
  runtime_.DefineCalls("garbage_collect:1", {"GcStartWork", "DiagGCStart", "GcDone"});
  runtime_.DefineCalls("do_post_gc:1", {"DiagGCEnd"});
  ExpectCollectionsRefused("instead of two each, none of them common");
}

TEST_P(HookLocatorTest, ADiagThatOthersCallToo) {
  runtime_.DefineCalls("another", {"DiagGCStart"});
  ExpectCollectionsRefused(std::get<1>(GetParam()) == Callbacks::kThunks
                               ? "DiagGCStart has other callers than GcStartWork"
                               : "DiagGCStart has no static copy");
}

TEST_P(HookLocatorTest, APrologueOfADiagThatIsPatched) {
  runtime_.Patch("DiagGCEnd", "\xcc");
  ExpectOnlyRefused({HookKind::kDiagGcEnd}, "is no known way to set up a frame");
  EXPECT_FALSE(Locate(runtime_).gc_settings.ok());
}

class ThunksTest : public testing::TestWithParam<ElfMachine> {
 protected:
  FakeRuntime runtime_ = FakeRuntime::CoreClr(GetParam(), Callbacks::kThunks);
};
INSTANTIATE_TEST_SUITE_P(All, ThunksTest, testing::ValuesIn(kMachines));

TEST_P(ThunksTest, ASlotWithOtherArguments) {
  runtime_.DefineThunk("slot:22", "444", "DiagGCEnd");
  ExpectRefused(Locate(runtime_), HookKind::kDiagGcEnd,
                "slot 22 passes on arguments of other sizes than DiagGCEnd has");
}

TEST_P(ThunksTest, ASlotThatIsInsertedBeforeOthers) {
  for (size_t i = 20; i > 3; --i) runtime_.pointers[FakeRuntime::kCallbackTable + 8 * i] = FakeRuntime::Slot(i - 1);
  ExpectRefused(Locate(runtime_), HookKind::kDiagGcStart, "passes on arguments of other sizes");
}

TEST_P(ThunksTest, ASlotThatIsNoThunk) {
  runtime_.DefineCalls("slot:3", {"GcStartWork"});
  ExpectRefused(Locate(runtime_), HookKind::kDiagGcStart, "slot 3, GcStartWork, is no jump thunk");
}

class BodiesTest : public testing::TestWithParam<ElfMachine> {
 protected:
  FakeRuntime runtime_ = FakeRuntime::CoreClr(GetParam(), Callbacks::kBodies);
};
INSTANTIATE_TEST_SUITE_P(All, BodiesTest, testing::ValuesIn(kMachines));

TEST_P(BodiesTest, AStaticCopyThatReadsSomethingElse) {
  runtime_.Define("GcDone", [](Assembly& a, const FakeRuntime& r) {
    a.Frame().Read(FakeRuntime::kData + 0x80).Call(r.At("helper:done")).Return();
  });
  ExpectRefused(Locate(runtime_), HookKind::kDiagGcEnd, "GcDone has no static copy");
}

TEST_P(BodiesTest, TwoStaticCopies) {
  runtime_.Define("copy", [](Assembly& a, const FakeRuntime& r) {
    a.Frame().Read(FakeRuntime::kData + 0x24).Call(r.At("helper:done")).Return();
  });
  ExpectRefused(Locate(runtime_), HookKind::kDiagGcEnd, "GcDone has two static copies");
}

TEST_P(BodiesTest, AStaticCopyThatSharesLittle) {
  runtime_.Define("DiagGCEnd", [](Assembly& a, const FakeRuntime& r) {
    a.Frame().Read(FakeRuntime::kData + 0x28).Read(FakeRuntime::kData + 0x38).Call(r.At("initialize")).Return();
  });
  ExpectRefused(Locate(runtime_), HookKind::kDiagGcEnd, "DiagGCEnd has no static copy");
}

TEST_P(BodiesTest, OneOfTwoPatchedRefusesBoth) {
  runtime_.Patch("slot:20", "\xcc");
  ExpectRefused(Locate(runtime_), HookKind::kDiagGcStart, "is no known way to set up a frame");
}

TEST_P(HookLocatorTest, SettingsInAnotherArrangement) {
  runtime_.Define("do_post_gc:1", [](Assembly& a, const FakeRuntime& r) {
    a.PostGc(FakeRuntime::kSettings[1], r.At("GcDone"), r.At("initialize")).Call(r.At("DiagGCEnd")).Return();
  });
  const RuntimeHooks hooks = Locate(runtime_);
  EXPECT_TRUE(hooks[HookKind::kDiagGcEnd].ok()) << hooks[HookKind::kDiagGcEnd].status();
  ASSERT_FALSE(hooks.gc_settings.ok());
  EXPECT_THAT(std::string(hooks.gc_settings.status().message()),
              HasSubstr("does not read the settings in the known way"));
}

TEST_P(HookLocatorTest, SettingsThatAreNoData) {
  runtime_.Define("do_post_gc:1", [](Assembly& a, const FakeRuntime& r) {
    a.PostGc(FakeRuntime::kData + 0x400 - 32, r.At("GcDone"), r.At("DiagGCEnd")).Return();
  });
  EXPECT_THAT(std::string(Locate(runtime_).gc_settings.status().message()), HasSubstr("are no data"));
}

TEST_P(HookLocatorTest, SettingsThatOverlap) {
  runtime_.Define("do_post_gc:1", [](Assembly& a, const FakeRuntime& r) {
    a.PostGc(FakeRuntime::kSettings[0] + 32, r.At("GcDone"), r.At("DiagGCEnd")).Return();
  });
  EXPECT_THAT(std::string(Locate(runtime_).gc_settings.status().message()), HasSubstr("one place for their settings"));
}

// --- compileMethod ---

class JitTest : public testing::TestWithParam<ElfMachine> {
 protected:
  FakeRuntime jit_ = FakeRuntime::Jit(GetParam());
  FakeRuntime host_ = FakeRuntime::Host(GetParam(), Callbacks::kThunks);
};
INSTANTIATE_TEST_SUITE_P(All, JitTest, testing::ValuesIn(kMachines));

TEST_P(JitTest, AnImageWithoutTheExport) {
  jit_.exports.clear();
  ExpectRefused(LocateJit(jit_), HookKind::kCompileMethod, "does not export getJit");
}

TEST_P(JitTest, AnExportBetweenFunctions) {
  jit_.not_in_unwind_table = "getJit";
  ExpectRefused(LocateJit(jit_), HookKind::kCompileMethod, "no function at the export getJit");
}

TEST_P(JitTest, AnExportThatLeadsNowhere) {
  jit_.data_pointers.clear();
  ExpectRefused(LocateJit(jit_), HookKind::kCompileMethod, "getJit refers to no object");
}

TEST_P(JitTest, AnExportThatLeadsElsewhere) {
  for (uint64_t i = 0; i < 4; ++i) jit_.pointers[FakeRuntime::kJitTable + 0x80 + 8 * i] = "setTargetOS";
  jit_.data_pointers[FakeRuntime::kJitObject] = FakeRuntime::kJitTable + 0x80;
  ExpectRefused(LocateJit(jit_), HookKind::kCompileMethod, "but the JIT interface's GUID to the one at");
}

TEST_P(JitTest, ATableWithoutAGuid) {
  for (FakeRuntime* runtime : {&jit_, &host_}) {
    runtime->pointers[FakeRuntime::kJitTable + 16] = "setTargetOS";
    const RuntimeHooks hooks = runtime == &jit_ ? LocateJit(jit_) : Locate(host_);
    ExpectRefused(hooks, HookKind::kCompileMethod, "a third one that copies the JIT interface's GUID");
    EXPECT_EQ(hooks.jit_interface, "");
  }
}

TEST_P(JitTest, ATableOfThree) {
  host_.pointers.erase(FakeRuntime::kJitTable + 24);
  ExpectRefused(Locate(host_), HookKind::kCompileMethod, "no table of four functions");
}

TEST_P(JitTest, ATableInWhichTheGuidIsNotThird) {
  host_.pointers[FakeRuntime::kJitTable - 8] = "setTargetOS";
  ExpectRefused(Locate(host_), HookKind::kCompileMethod, "no table of four functions");
}

TEST_P(JitTest, TwoTables) {
  for (uint64_t i = 0; i < 4; ++i) {
    host_.pointers[FakeRuntime::kJitTable + 0x80 + 8 * i] = host_.pointers[FakeRuntime::kJitTable + 8 * i];
  }
  const RuntimeHooks hooks = Locate(host_);
  ExpectRefused(hooks, HookKind::kCompileMethod, "two tables look like the JIT's");
  EXPECT_TRUE(hooks[HookKind::kSuspendEE].ok());
}

TEST_P(JitTest, AnUnknownInterfaceHasNoFlagsAndIsNotBelievedInAHost) {
  jit_.guid = host_.guid = "0123456789abcdef";
  const RuntimeHooks hooks = LocateJit(jit_);
  ExpectFound(hooks, HookKind::kCompileMethod, jit_, {{"compileMethod"}});
  EXPECT_EQ(hooks.jit_interface, "33323130-3534-3736-3839-616263646566");
  EXPECT_THAT(std::string(hooks.jit_return.status().message()), HasSubstr("is not of .NET 8 to 11"));
  ExpectRefused(Locate(host_), HookKind::kCompileMethod, "is not of .NET 8 to 11");
}

TEST_P(JitTest, AFirstFunctionThatIsTooSmall) {
  jit_.pointers[FakeRuntime::kJitTable] = "jitNativeCode";
  ExpectRefused(LocateJit(jit_), HookKind::kCompileMethod, "no table of four functions");
}

TEST_P(JitTest, APatchedPrologue) {
  jit_.Patch("compileMethod", "\xcc");
  const RuntimeHooks hooks = LocateJit(jit_);
  ExpectRefused(hooks, HookKind::kCompileMethod, "is no known way to set up a frame");
  EXPECT_FALSE(hooks.jit_return.ok());
}

// The place inside the function is given for the known instructions only: any other byte, anywhere, and it is not.
TEST_P(JitTest, AnyOtherInstructionHasNoReturn) {
  jit_.Build();
  const RuntimeHooks known = LocateJit(jit_);
  ASSERT_TRUE(known.jit_return.ok());
  Assembly original(GetParam(), jit_.At("compileMethod"));
  original.CompileMethod(jit_.At("jitNativeCode"));
  size_t given = 0;
  for (size_t i = 4; i < original.bytes().size(); ++i) {
    std::string changed = original.bytes();
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    jit_.Patch("compileMethod", changed);
    const RuntimeHooks hooks = LocateJit(jit_);
    if (!hooks[HookKind::kCompileMethod].ok()) continue;  // arm64: a part of the prologue
    if (!hooks.jit_return.ok()) {
      EXPECT_THAT(std::string(hooks.jit_return.status().message()), HasSubstr("is not, instruction for instruction"));
      continue;
    }
    ++given;
    EXPECT_EQ(hooks.jit_return->offset.value, known.jit_return->offset.value);
  }
  // Distances of two calls and a slot's number; on arm64 also pages and offsets, parts of which are in the changed
  // bytes.
  EXPECT_EQ(given, GetParam() == ElfMachine::kX64 ? 10u : given);
  EXPECT_LE(given, 20u);
}

TEST_P(JitTest, ALongerFunctionHasNoReturn) {
  jit_.Define("compileMethod", [](Assembly& a, const FakeRuntime& r) {
    a.CompileMethod(r.At("jitNativeCode")).Call(r.At("jitNativeCode"));
  });
  const RuntimeHooks hooks = LocateJit(jit_);
  EXPECT_TRUE(hooks[HookKind::kCompileMethod].ok());
  EXPECT_FALSE(hooks.jit_return.ok());
}

// --- Images ---

TEST(HookLocatorImageTest, WithoutImagesAllIsRefused) {
  const RuntimeHooks hooks = LocateHooks({});
  for (const HookKind kind : kAllKinds) EXPECT_FALSE(hooks[kind].ok());
  EXPECT_FALSE(hooks.jit_return.ok());
  EXPECT_FALSE(hooks.gc_settings.ok());
}

TEST(HookLocatorImageTest, OtherImagesAreNotLookedAt) {
  for (const char* exported : {"main", "GC_Initialize", "coreclr_initialize"}) {  // the last one alone is Mono's
    FakeRuntime runtime = FakeRuntime::Host(ElfMachine::kX64, Callbacks::kThunks);
    runtime.exports = {{exported, "initialize"}};
    FakeRuntime jit = FakeRuntime::Jit(ElfMachine::kX64);
    const Image image(runtime.Build()), jit_image(jit.Build());
    const RuntimeHooks hooks = LocateHooks({.runtime = image.get(), .jit = jit_image.get()});
    for (const HookKind kind : kAllKinds) ExpectRefused(hooks, kind, "does not export what a .NET runtime exports");
  }
}

TEST(HookLocatorImageTest, ARuntimeWithoutItsJit) {
  FakeRuntime runtime = FakeRuntime::CoreClr(ElfMachine::kX64, Callbacks::kThunks);
  const RuntimeHooks hooks = Locate(runtime);
  EXPECT_THAT(std::string(hooks[HookKind::kCompileMethod].status().message()), HasSubstr("no image of the JIT"));
  EXPECT_TRUE(hooks[HookKind::kSuspendEE].ok());
}

TEST(HookLocatorImageTest, AnUnwindTableThatContradictsItself) {
  const auto refused = [](std::function<void(std::vector<std::pair<uint64_t, uint64_t>>&)> change, const char* why) {
    FakeRuntime host = FakeRuntime::Host(ElfMachine::kX64, Callbacks::kThunks);
    host.change_bounds = std::move(change);
    const RuntimeHooks hooks = Locate(host);
    for (const HookKind kind : kAllKinds) ExpectRefused(hooks, kind, why);
  };
  refused([](auto& bounds) { std::swap(bounds[5], bounds[6]); }, "is not in order");
  refused([](auto& bounds) { bounds[6] = bounds[5]; }, "is not in order");
  refused([](auto& bounds) { bounds[5].second = 0x1000; }, "a function inside another one");
  // A function that begins inside another one: what a probe must never be planted on.
  refused(
      [](auto& bounds) {
        bounds.insert(bounds.begin() + 6, {bounds[5].first + 1, 3});
      },
      "a function inside another one");
  refused([](auto& bounds) { bounds.clear(); }, "");
}

TEST(HookLocatorImageTest, WithoutAnUnwindTable) {
  FakeRuntime host = FakeRuntime::Host(ElfMachine::kX64, Callbacks::kThunks);
  host.change_image = [](LinkedImage& image) { image.Find(".eh_frame_hdr")->bytes[0] = 2; };
  const RuntimeHooks hooks = Locate(host);
  for (const HookKind kind : kAllKinds) ExpectRefused(hooks, kind, "the runtime's functions can't be told");
}

TEST(HookLocatorImageTest, SegmentsThatShareAddressesOrBytes) {
  FakeRuntime host = FakeRuntime::Host(ElfMachine::kX64, Callbacks::kThunks);
  host.change_image = [](LinkedImage& image) {
    image.Add({.name = ".more", .address = FakeRuntime::kCode + 0x10, .bytes = "1234"});
  };
  ExpectRefused(Locate(host), HookKind::kSuspendEE, "loaded to the same addresses");

  host.change_image = nullptr;
  std::string bytes = host.Build();
  Elf64_Phdr segment;
  char* const first = bytes.data() + sizeof(Elf64_Ehdr);  // of the code
  std::memcpy(&segment, first, sizeof segment);
  const uint64_t offset = segment.p_offset;
  std::memcpy(&segment, first + sizeof segment, sizeof segment);
  segment.p_offset = offset + 1;
  std::memcpy(first + sizeof segment, &segment, sizeof segment);
  const Image image(bytes);
  ExpectRefused(LocateHooks({.runtime = image.get()}), HookKind::kSuspendEE, "loaded from the same bytes");
}

TEST(HookLocatorImageTest, ATruncatedImageGivesNothingWrong) {
  for (const ElfMachine machine : kMachines) {
    FakeRuntime host = FakeRuntime::Host(machine, Callbacks::kBodies);
    const std::string whole = host.Build();
    for (size_t size = 0; size < whole.size(); size += 37) {
      const std::string bytes = whole.substr(0, size);
      const auto parsed = ElfImage::Parse(AsBytes(bytes));
      if (!parsed.ok()) continue;
      const RuntimeHooks hooks = LocateHooks({.runtime = &*parsed, .jit = &*parsed});
      for (const HookKind kind : kAllKinds) EXPECT_FALSE(hooks[kind].ok()) << size << HookKindText(kind);
    }
  }
}

// --- Symbols ---

constexpr const char* kSuspendSymbol = "_ZN13ThreadSuspend9SuspendEEENS_14SUSPEND_REASONE";

TEST_P(HookLocatorTest, SymbolsThatAgree) {
  runtime_.symbols = {{kSuspendSymbol, "SuspendEE"},
                      {"_ZN13ThreadSuspend9RestartEEEii", "RestartEE"},
                      {"_ZN15GCToEEInterface11DiagGCStartEib", "DiagGCStart"},
                      {"_ZN10standalone15GCToEEInterface11DiagGCStartEib", "slot:20"}};
  const RuntimeHooks hooks = Locate(runtime_);
  ExpectFound(hooks, HookKind::kSuspendEE, runtime_, {{"SuspendEE"}});
  EXPECT_THAT(hooks[HookKind::kSuspendEE]->front().evidence, HasSubstr("the symbol _ZN13ThreadSuspend9SuspendEE"));
  EXPECT_THAT(hooks[HookKind::kSuspendEE]->front().evidence, HasSubstr("; and the only function that fires"));
  std::vector<Expected> start = {{"DiagGCStart"}};
  if (std::get<1>(GetParam()) == Callbacks::kBodies) start.push_back({"slot:20", 1});
  ExpectFound(hooks, HookKind::kDiagGcStart, runtime_, start);
  EXPECT_TRUE(hooks[HookKind::kDiagGcEnd].ok());  // which has no symbol
  EXPECT_TRUE(hooks[HookKind::kSuspendEE]->front().proven_by_code);
}

TEST_P(HookLocatorTest, SymbolsThatDisagree) {
  runtime_.symbols = {{kSuspendSymbol, "RestartEE"}};
  ExpectSuspendRefused("symbols lead to");
  runtime_.symbols = {{"_ZN15GCToEEInterface9DiagGCEndEmiib", "DiagGCStart"}};
  const RuntimeHooks hooks = Locate(runtime_);
  ExpectRefused(hooks, HookKind::kDiagGcEnd, "symbols lead to");
  EXPECT_TRUE(hooks[HookKind::kDiagGcStart].ok());
}

TEST_P(HookLocatorTest, SymbolsWhereTheCodeSaysNothing) {
  runtime_.tracepoints.clear();
  runtime_.symbols = {{kSuspendSymbol, "SuspendEE"}};
  const RuntimeHooks hooks = Locate(runtime_);
  ExpectFound(hooks, HookKind::kSuspendEE, runtime_, {{"SuspendEE"}});
  EXPECT_FALSE(hooks[HookKind::kSuspendEE]->front().proven_by_code);
  ExpectRefused(hooks, HookKind::kRestartEE, "no tracepoint sections");
}

class NativeAotTest : public testing::TestWithParam<ElfMachine> {
 protected:
  RuntimeHooks LocateWithDebugFile(const std::string& build_id = "12345678901234567890") {
    program_.change_image = [](LinkedImage& image) { image.BuildId("12345678901234567890"); };
    const Image image(program_.Build()), debug(program_.BuildDebugFile(build_id));
    return LocateHooks({.runtime = image.get(), .runtime_debug = debug.get()});
  }
  void ExpectSuspendRefused(const std::string& why) {
    const RuntimeHooks hooks = LocateWithDebugFile();
    ExpectRefused(hooks, HookKind::kSuspendEE, why);
    EXPECT_TRUE(hooks[HookKind::kRestartEE].ok()) << hooks[HookKind::kRestartEE].status();
  }
  static constexpr const char* kSuspend = "_ZN15GCToEEInterface9SuspendEEE14SUSPEND_REASON";
  FakeRuntime program_ = FakeRuntime::NativeAot(GetParam());
};
INSTANTIATE_TEST_SUITE_P(All, NativeAotTest, testing::ValuesIn(kMachines));

TEST_P(NativeAotTest, IsFoundByItsDebugFile) {
  for (const char* build_id : {"12345678901234567890", ""}) {
    const RuntimeHooks hooks = LocateWithDebugFile(build_id);
    ExpectFound(hooks, HookKind::kSuspendEE, program_, {{"SuspendEE"}});
    ExpectFound(hooks, HookKind::kRestartEE, program_, {{"RestartEE"}});
    ExpectFound(hooks, HookKind::kDiagGcStart, program_, {{"DiagGCStart"}});
    ExpectFound(hooks, HookKind::kDiagGcEnd, program_, {{"DiagGCEnd"}});
    EXPECT_THAT(std::string(hooks[HookKind::kCompileMethod].status().message()), HasSubstr("compiles nothing"));
    ASSERT_TRUE(hooks.gc_settings.ok()) << hooks.gc_settings.status();
    ASSERT_EQ(hooks.gc_settings->size(), 1u);
    EXPECT_EQ(hooks.gc_settings->front().at.value, FakeRuntime::kSettings[0]);
  }
}

TEST_P(NativeAotTest, WithBothCollectors) {
  program_.DefinePostGc(1);
  program_.debug_symbols["_ZN3SVR7gc_heap10do_post_gcEv"] = "do_post_gc:1";
  const RuntimeHooks hooks = LocateWithDebugFile();
  ASSERT_TRUE(hooks.gc_settings.ok()) << hooks.gc_settings.status();
  EXPECT_EQ(hooks.gc_settings->size(), 2u);
  program_.debug_symbols.erase("_ZN3SVR7gc_heap10do_post_gcEv");
  program_.debug_symbols.erase("_ZN3WKS7gc_heap10do_post_gcEv");
  EXPECT_THAT(std::string(LocateWithDebugFile().gc_settings.status().message()), HasSubstr("0 functions do_post_gc"));
}

TEST_P(NativeAotTest, NeedsSymbols) {
  const RuntimeHooks hooks = Locate(program_);
  ExpectRefused(hooks, HookKind::kSuspendEE, "there are no symbols");
  EXPECT_THAT(HintOf(hooks[HookKind::kSuspendEE].status()), HasSubstr(".dbg"));
}

TEST_P(NativeAotTest, ADebugFileOfAnotherBuild) {
  const RuntimeHooks hooks = LocateWithDebugFile("09876543210987654321");
  for (const HookKind kind : kAllKinds) {
    if (kind != HookKind::kCompileMethod) ExpectRefused(hooks, kind, "the debug file is of another build");
    EXPECT_THAT(HintOf(hooks[HookKind::kSuspendEE].status()), HasSubstr("written together"));
  }
}

TEST_P(NativeAotTest, ASymbolBesideAFunction) {
  program_.not_in_unwind_table = "SuspendEE";
  ExpectSuspendRefused("no function of the unwind table begins at");
}

// As the runtime in NativeAOT programs is since .NET 9.
TEST_P(NativeAotTest, WithoutUnwindTablesSymbolsTellFunctions) {
  program_.change_bounds = [](auto& bounds) { bounds.clear(); };
  program_.Build();
  for (const auto& [symbol, function] : program_.debug_symbols)
    program_.symbol_bytes[symbol] = program_.Bytes(function);
  const RuntimeHooks hooks = LocateWithDebugFile();
  ExpectFound(hooks, HookKind::kSuspendEE, program_, {{"SuspendEE"}});
  ExpectFound(hooks, HookKind::kDiagGcEnd, program_, {{"DiagGCEnd"}});
  ASSERT_TRUE(hooks.gc_settings.ok()) << hooks.gc_settings.status();
  EXPECT_EQ(hooks.gc_settings->front().at.value, FakeRuntime::kSettings[0]);
  // Only if the debug file is of this build for sure.
  const RuntimeHooks unsure = LocateWithDebugFile("");
  ExpectRefused(unsure, HookKind::kSuspendEE, "no function of the unwind table begins at");
  // And only where symbols agree.
  program_.symbol_bytes[kSuspend] = 0x18;
  ExpectRefused(LocateWithDebugFile(), HookKind::kSuspendEE, "no function of the unwind table begins at");
  program_.symbol_bytes[kSuspend] = program_.Bytes("SuspendEE");
  program_.patches["SuspendEE"] = "\xcc";
  ExpectSuspendRefused("is no known way to set up a frame");
}

TEST_P(NativeAotTest, ASymbolOfAnotherSize) {
  program_.symbol_bytes[kSuspend] = 5;
  ExpectSuspendRefused("has 5 bytes, but its function in the unwind table");
}

TEST_P(NativeAotTest, FoldedCode) {
  program_.debug_symbols["something_else"] = "SuspendEE";
  ExpectSuspendRefused("is shared with other functions");
  program_.debug_symbols.erase("something_else");
  program_.debug_symbols[std::string(kSuspend) + ".localalias"] = "SuspendEE";
  EXPECT_TRUE(LocateWithDebugFile()[HookKind::kSuspendEE].ok());
  program_.debug_symbols["_ZN15GCToEEInterface11DiagGCStartEib"] = "DiagGCEnd";
  const RuntimeHooks hooks = LocateWithDebugFile();
  ExpectRefused(hooks, HookKind::kDiagGcStart, "are one function");
  ExpectRefused(hooks, HookKind::kDiagGcEnd, "are one function");
}

TEST_P(NativeAotTest, ANameThatIsMissing) {
  program_.debug_symbols.erase(kSuspend);
  ExpectSuspendRefused("there is no symbol");
}

}  // namespace
}  // namespace clrsampler
