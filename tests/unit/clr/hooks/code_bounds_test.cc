// Images with more code than any runtime has: no search begins, whatever it looks for.
#include <gtest/gtest.h>

#include <string>

#include "clr/hooks/allocation_scan_arm64.h"
#include "clr/hooks/allocation_scan_x64.h"
#include "clr/hooks/allocation_search.h"
#include "clr/hooks/exception_search.h"
#include "clr/hooks/hook_locator.h"
#include "clr/hooks/image_code.h"
#include "formats/byte_reader.h"
#include "status/status.h"
#include "unit/clr/hooks/fake_runtime.h"

namespace clrsampler {
namespace {

constexpr ElfMachine kBothMachines[] = {ElfMachine::kX64, ElfMachine::kArm64};

// cmp rax, 0x19001; then nothing but add [rax], al, as a hole in a file reads.
std::string HoleBehindAComparison(size_t bytes) {
  std::string code("\x48\x3d\x01\x90\x01\x00", 6);
  code.resize(bytes, '\0');
  return code;
}

void DefineLarge(FakeRuntime& runtime, const std::string& name, size_t bytes) {
  runtime.Define(name, [bytes](Assembly& a, const FakeRuntime&) { a.Text(HoleBehindAComparison(bytes)); });
}

void ExpectTooLarge(const absl::Status& status, const std::string& why) {
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_NE(status.message().find(why), std::string::npos) << status;
  EXPECT_NE(HintOf(status), "");
}

void ExpectNothingIsSearched(FakeRuntime& runtime, const std::string& why) {
  const std::string bytes = runtime.Build();
  const auto image = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(image.ok()) << image.status();
  ExpectTooLarge(LocateAllocations(*image).status(), why);
  ExpectTooLarge(LocateExceptions(*image).status(), why);
  const RuntimeHooks hooks = LocateHooks({.runtime = &*image});
  for (const HookPoints& points : hooks.points) ExpectTooLarge(points.status(), why);
  ExpectTooLarge(LocateHooks({.jit = &*image})[HookKind::kCompileMethod].status(), why);
}

TEST(CodeBoundsTest, AFunctionThatIsLargerThanAny) {
  for (const ElfMachine machine : kBothMachines) {
    FakeRuntime host = FakeRuntime::Host(machine, FakeRuntime::Callbacks::kThunks);
    DefineLarge(host, "large", ImageCode::kMaxFunctionBytes + 4);
    ExpectNothingIsSearched(host, "has 1048580 bytes");
  }
}

TEST(CodeBoundsTest, MoreCodeThanAnyRuntimeHas) {
  for (const ElfMachine machine : kBothMachines) {
    FakeRuntime host = FakeRuntime::Host(machine, FakeRuntime::Callbacks::kThunks);
    for (size_t i = 0; i < ImageCode::kMaxCodeBytes / ImageCode::kMaxFunctionBytes; ++i) {
      DefineLarge(host, "large:" + std::to_string(i), ImageCode::kMaxFunctionBytes);
    }
    ExpectNothingIsSearched(host, "there are 32 MB of code");
  }
}

TEST(CodeBoundsTest, ALargestFunctionIsSearched) {
  FakeRuntime host = FakeRuntime::Host(ElfMachine::kX64, FakeRuntime::Callbacks::kThunks);
  DefineLarge(host, "large", ImageCode::kMaxFunctionBytes);
  const std::string bytes = host.Build();
  const auto image = ElfImage::Parse(AsBytes(bytes));
  for (const HookPoints& points : LocateHooks({.runtime = &*image}).points) EXPECT_TRUE(points.ok()) << points.status();
  EXPECT_TRUE(absl::IsNotFound(LocateAllocations(*image).status()));
}

// The program may be as large as it likes, but not the functions that are looked at.
TEST(CodeBoundsTest, NativeAotProgramsAreLookedAtByNames) {
  const std::string build_id = "12345678901234567890";
  for (const ElfMachine machine : kBothMachines) {
    FakeRuntime program = FakeRuntime::NativeAot(machine);
    program.change_image = [&](LinkedImage& image) { image.BuildId(build_id); };
    DefineLarge(program, "managed", ImageCode::kMaxCodeBytes + 4);
    DefineLarge(program, "RestartEE", ImageCode::kMaxFunctionBytes + 4);
    const std::string bytes = program.Build(), debug_bytes = program.BuildDebugFile(build_id);
    const auto image = ElfImage::Parse(AsBytes(bytes)), debug = ElfImage::Parse(AsBytes(debug_bytes));
    ASSERT_TRUE(image.ok() && debug.ok());
    const RuntimeHooks hooks = LocateHooks({.runtime = &*image, .runtime_debug = &*debug});
    EXPECT_TRUE(hooks[HookKind::kSuspendEE].ok()) << hooks[HookKind::kSuspendEE].status();
    ExpectTooLarge(hooks[HookKind::kRestartEE].status(), "has 1048580 bytes");
  }
}

// Comparisons, each with a report to look for behind it.
TEST(CodeBoundsTest, MorePlacesThanAnyRuntimeMayReportAt) {
  // cmp rax, 0x19001; jb +0. And cmp w8, #5; b.ge +8.
  const std::string x64("\x48\x3d\x01\x90\x01\x00\x72\x00", 8), arm64("\x1f\x15\x00\x71\x4a\x00\x00\x54", 8);
  std::string x64_code, arm64_code;
  for (size_t i = 0; i < 2 * kMaxFollowed; ++i) {
    x64_code += x64;
    arm64_code += arm64;
  }
  EXPECT_EQ(x64::FindAllocationReports(AsBytes(x64_code), {}).followed, kMaxFollowed + 1);
  EXPECT_EQ(arm64::FindAllocationReports(AsBytes(arm64_code), {}).followed, kMaxFollowed + 1);
  for (const ElfMachine machine : kBothMachines) {
    FakeRuntime host = FakeRuntime::Host(machine, FakeRuntime::Callbacks::kThunks);
    const std::string half =
        machine == ElfMachine::kX64 ? x64_code.substr(x64_code.size() / 2) : arm64_code.substr(arm64_code.size() / 2);
    for (const char* name : {"first", "second"}) {
      host.Define(name, [&](Assembly& a, const FakeRuntime&) { a.Text(half); });
    }
    const std::string bytes = host.Build();
    const auto image = ElfImage::Parse(AsBytes(bytes));
    ExpectTooLarge(LocateAllocations(*image).status(), "more places may report allocations");
  }
}

}  // namespace
}  // namespace clrsampler
