#include "clr/hooks/code_scan_arm64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/byte_reader.h"
#include "unit/clr/hooks/fake_runtime.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr VirtualAddress kStart{0x401ff0};  // the instructions lie on two pages
Assembly At() { return Assembly(ElfMachine::kArm64, kStart.value); }

std::string Words(std::initializer_list<uint32_t> words) {
  std::string code;
  for (const uint32_t word : words) code += RawBytes(word);
  return code;
}

std::vector<std::pair<CodeReference::Kind, uint64_t>> Scan(const std::string& code) {
  std::vector<std::pair<CodeReference::Kind, uint64_t>> found;
  arm64::ScanReferences(AsBytes(code), kStart,
                        [&](const CodeReference& one) { found.emplace_back(one.kind, one.target.value); });
  return found;
}
constexpr auto kBranch = CodeReference::Kind::kBranch, kData = CodeReference::Kind::kData;

TEST(CodeScanArm64Test, BranchesAndData) {
  EXPECT_THAT(Scan(At().Call(0x500000).bytes()), ElementsAre(std::pair(kBranch, 0x500000u)));
  EXPECT_THAT(Scan(At().Jump(0x400000).bytes()), ElementsAre(std::pair(kBranch, 0x400000u)));
  EXPECT_THAT(Scan(At().Read(0x600008).bytes()), ElementsAre(std::pair(kData, 0x600008u)));
  EXPECT_THAT(Scan(At().AddressOf(0x300010).bytes()), ElementsAre(std::pair(kData, 0x300010u)));  // before the code
  EXPECT_THAT(Scan(At().Frame().Call(0x500000).Frame().Frame().Read(0x600008).Return().bytes()),
              ElementsAre(std::pair(kBranch, 0x500000u), std::pair(kData, 0x600008u)));
}

TEST(CodeScanArm64Test, ARegisterIsFollowedUntilItIsSetOrForgotten) {
  // adrp x8, of this page; ldr x8, [x8, #8]; ldr w8, [x8, #4]: the second load is from elsewhere
  EXPECT_THAT(Scan(Words({0x90000008, 0xf9400508, 0xb9400508})), ElementsAre(std::pair(kData, 0x401008u)));
  // ldr w9, [x8, #4]; ldr q0, [x8, #16]: both are from the page
  EXPECT_THAT(Scan(Words({0x90000008, 0xb9400509, 0x3dc00500})),
              ElementsAre(std::pair(kData, 0x401004u), std::pair(kData, 0x401010u)));
  std::string far = Words({0x90000008});
  for (int i = 0; i < 7; ++i) far += Words({0xd503201f});
  EXPECT_THAT(Scan(far + Words({0xb9400509})), IsEmpty());
  EXPECT_THAT(Scan(Words({0xb9400509})), IsEmpty());
}

TEST(CodeScanArm64Test, Frames) {
  const auto frame = [](std::initializer_list<uint32_t> words) {
    return arm64::BeginsWithFrame(AsBytes(Words(words)));
  };
  EXPECT_TRUE(frame({0xa9bc7bfd}));                          // stp x29, x30, [sp, #-64]!
  EXPECT_TRUE(frame({0xd503233f, 0xa9bf7bfd}));              // paciasp first
  EXPECT_TRUE(frame({0xd10203ff, 0xa9057bfd}));              // sub sp, sp, #128; stp x29, x30, [sp, #80]
  EXPECT_TRUE(frame({0xd10183ff, 0xf9001bf9, 0xa9027bfd}));  // another register between
  EXPECT_TRUE(frame({0xd503233f, 0xd10203ff, 0xa9057bfd}));
  EXPECT_FALSE(frame({0xd10203ff, 0xf9001bf9, 0xf9400028}));  // the record is not stored
  EXPECT_FALSE(frame({0xa9be4ff4}));                          // stp x20, x19, [sp, #-32]!
  EXPECT_FALSE(frame({0xd503245f, 0xa9bf7bfd}));              // bti c
  EXPECT_FALSE(frame({0xd503233f}));
  EXPECT_FALSE(frame({0x90000008, 0xa9bf7bfd}));
  EXPECT_FALSE(frame({0xd42000e0}));
  EXPECT_FALSE(frame({0xd10003ff, 0xa9057bfd}));  // lowers sp by nothing
  EXPECT_FALSE(frame({}));
}

TEST(CodeScanArm64Test, JumpThunks) {
  for (const char* arguments : {"", "4", "8", "44", "8444", "8848448"}) {
    const std::string code = [&] {
      Assembly a = At();
      for (uint32_t i = 0; arguments[i] != '\0'; ++i)
        a.Word((arguments[i] == '8' ? 0xaa0003e0 : 0x2a0003e0) | (i + 1) << 16 | i);
      return a.Jump(0x500000).bytes();
    }();
    const auto thunk = arm64::DecodeJumpThunk(AsBytes(code), kStart);
    ASSERT_TRUE(thunk.has_value()) << arguments;
    EXPECT_EQ(thunk->arguments, arguments);
    EXPECT_EQ(thunk->target.value, 0x500000u);
    for (size_t size = 0; size < code.size(); ++size) {
      EXPECT_FALSE(arm64::DecodeJumpThunk(AsBytes(code.substr(0, size)), kStart)) << size;
    }
    EXPECT_FALSE(arm64::DecodeJumpThunk(AsBytes(code + Words({0xd503201f})), kStart));
  }
  EXPECT_FALSE(arm64::DecodeJumpThunk(AsBytes(At().Call(0x500000).bytes()), kStart));
  EXPECT_FALSE(
      arm64::DecodeJumpThunk(AsBytes(At().Word(0x2a0203e1).Jump(0x500000).bytes()), kStart));  // the second first
}

TEST(CodeScanArm64Test, CopiedGuids) {
  const std::string code = At().CopyGuid(0x600010).bytes();
  EXPECT_EQ(arm64::CopiedGuid(AsBytes(code), kStart), VirtualAddress{0x600010});
  // adrp x8, page; ldr q1, [x8, #32]; str q1, [x1]; ret
  EXPECT_EQ(arm64::CopiedGuid(AsBytes(Words({0x90000008, 0x3dc00901, 0x3d800021, 0xd65f03c0})), kStart),
            VirtualAddress{0x401020});
  for (size_t i = 0; i < code.size(); i += 4) {
    std::string other = code;
    other[i] ^= 0x01;  // another register, or another instruction
    EXPECT_FALSE(arm64::CopiedGuid(AsBytes(other), kStart)) << i;
    EXPECT_FALSE(arm64::CopiedGuid(AsBytes(code.substr(0, i)), kStart));
  }
  EXPECT_FALSE(arm64::CopiedGuid(AsBytes(code + code), kStart));
}

TEST(CodeScanArm64Test, SettingsOfPostGc) {
  const std::string code = At().PostGc(0x600104, 0x500000, 0x500100).Return().bytes();
  const auto find = [](const std::string& bytes, uint64_t done = 0x500000, uint64_t end = 0x500100) {
    return arm64::SettingsOfPostGc(AsBytes(bytes), kStart, {done}, {end});
  };
  ASSERT_TRUE(find(code).has_value());
  EXPECT_EQ(find(code)->at.value, 0x600104u);
  EXPECT_FALSE(find(code, 0x500004));
  EXPECT_FALSE(find(code, 0x500000, 0x500104));
  for (size_t size = 0; size + 8 < code.size(); ++size) EXPECT_FALSE(find(code.substr(0, size))) << size;
  // Each of the instructions that count, from adrp to the second call: another register.
  for (const size_t index : {2, 3, 4, 5, 6, 9, 10, 11, 14}) {
    std::string other = code;
    other[index * 4] ^= index == 2 || index == 5 || index == 14 ? 0x08 : 0x60;  // target or distance; else base
    EXPECT_FALSE(find(other)) << index;
  }
}

TEST(CodeScanArm64Test, CompileMethodAsAWhole) {
  const std::string code = At().CompileMethod(0x500000).bytes();
  ASSERT_EQ(code.size(), 0xc4u);
  const auto site = arm64::ReturnOfCompileMethod(AsBytes(code));
  ASSERT_TRUE(site.has_value());
  EXPECT_EQ(LoadAt<uint32_t>(AsBytes(code), site->offset), 0x540000c1u);  // b.ne to the last call
  EXPECT_EQ(site->form, CompileForm::kEntryInRegister);
  EXPECT_FALSE(arm64::ReturnOfCompileMethod(AsBytes(code.substr(0, 0xc0))));
  EXPECT_FALSE(arm64::ReturnOfCompileMethod(AsBytes(code + Words({0xd503201f}))));
  EXPECT_FALSE(arm64::ReturnOfCompileMethod({}));
}

}  // namespace
}  // namespace clrsampler
