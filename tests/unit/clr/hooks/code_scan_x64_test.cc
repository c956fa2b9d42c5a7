#include "clr/hooks/code_scan_x64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/byte_reader.h"
#include "unit/clr/hooks/fake_runtime.h"

namespace clrsampler {
namespace {

using std::string_view_literals::operator""sv;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr VirtualAddress kStart{0x401000};

std::string Bytes(std::initializer_list<uint8_t> bytes) { return std::string(bytes.begin(), bytes.end()); }
Assembly At() { return Assembly(ElfMachine::kX64, kStart.value); }

std::vector<std::pair<CodeReference::Kind, uint64_t>> Scan(const std::string& code) {
  std::vector<std::pair<CodeReference::Kind, uint64_t>> found;
  x64::ScanReferences(AsBytes(code), kStart,
                      [&](const CodeReference& one) { found.emplace_back(one.kind, one.target.value); });
  return found;
}
constexpr auto kBranch = CodeReference::Kind::kBranch, kData = CodeReference::Kind::kData;

TEST(CodeScanX64Test, BranchesAndData) {
  EXPECT_THAT(Scan(At().Call(0x500000).bytes()), ElementsAre(std::pair(kBranch, 0x500000u)));
  EXPECT_THAT(Scan(At().Jump(0x400000).bytes()), ElementsAre(std::pair(kBranch, 0x400000u)));
  EXPECT_THAT(Scan(At().Read(0x600008).bytes()), ElementsAre(std::pair(kData, 0x600008u)));  // has a constant
  EXPECT_THAT(Scan(At().AddressOf(0x600010).bytes()), ElementsAre(std::pair(kData, 0x600010u)));
  EXPECT_THAT(Scan(At().Frame().Call(0x500000).Read(0x600008).Return().bytes()),
              ElementsAre(std::pair(kBranch, 0x500000u), std::pair(kData, 0x600008u)));
}

TEST(CodeScanX64Test, ConstantsBehindAnAddress) {
  // From the end of the instruction on, at distance 0x100.
  const auto target = [](std::initializer_list<uint8_t> opcode, uint64_t more) {
    std::string code = Bytes(opcode) + RawBytes(uint32_t{0x100}) + std::string(more, '\0');
    const auto found = Scan(code);
    return found.size() == 1 && found[0].second == kStart.value + code.size() + 0x100;
  };
  EXPECT_TRUE(target({0x8b, 0x35}, 0));        // mov esi, [rip+n]
  EXPECT_TRUE(target({0x48, 0x8b, 0x05}, 0));  // mov rax, [rip+n]
  EXPECT_TRUE(target({0x83, 0x3d}, 1));        // cmp dword [rip+n], 0
  EXPECT_TRUE(target({0x80, 0x3d}, 1));        // cmp byte [rip+n], 0
  EXPECT_TRUE(target({0xf6, 0x05}, 1));        // test byte [rip+n], 0
  EXPECT_TRUE(target({0xf6, 0x1d}, 0));        // neg byte [rip+n]
  EXPECT_TRUE(target({0xff, 0x15}, 0));        // call [rip+n]
}

TEST(CodeScanX64Test, NothingIsReadBeyondTheEnd) {
  const std::string call = At().Call(0x500000).bytes(), read = At().AddressOf(0x600000).bytes();
  for (size_t size = 0; size < call.size(); ++size) EXPECT_THAT(Scan(call.substr(0, size)), IsEmpty());
  for (size_t size = 0; size < read.size(); ++size) EXPECT_THAT(Scan(read.substr(0, size)), IsEmpty());
}

// Not an instruction but the operand of one. It is reported; what becomes of it is said in the header.
TEST(CodeScanX64Test, OperandsMayBeMisread) {
  EXPECT_THAT(Scan(Bytes({0xb8, 0xe8, 0, 0, 0, 0x90, 0x90})),
              ElementsAre(std::pair(kBranch, kStart.value + 6 + 0x90000000 - (uint64_t{1} << 32))));
}

TEST(CodeScanX64Test, Frames) {
  EXPECT_TRUE(x64::BeginsWithFrame(AsBytes(Bytes({0x55, 0x48, 0x89, 0xe5}))));
  EXPECT_FALSE(x64::BeginsWithFrame(AsBytes(Bytes({0x55, 0x48, 0x89}))));
  EXPECT_FALSE(x64::BeginsWithFrame({}));
  EXPECT_FALSE(x64::BeginsWithFrame(AsBytes(Bytes({0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5}))));
  EXPECT_FALSE(x64::BeginsWithFrame(AsBytes(Bytes({0x55, 0x48, 0x8b, 0xec}))));
}

TEST(CodeScanX64Test, JumpThunks) {
  for (const char* arguments : {"", "4", "8", "44", "8444", "88484"}) {
    const std::string code = At().Thunk(arguments, 0x500000).bytes();
    const auto thunk = x64::DecodeJumpThunk(AsBytes(code), kStart);
    ASSERT_TRUE(thunk.has_value()) << arguments;
    EXPECT_EQ(thunk->arguments, arguments);
    EXPECT_EQ(thunk->target.value, 0x500000u);
    for (size_t size = 0; size < code.size(); ++size) {
      EXPECT_FALSE(x64::DecodeJumpThunk(AsBytes(code.substr(0, size)), kStart)) << size;
    }
    EXPECT_FALSE(x64::DecodeJumpThunk(AsBytes(code + '\x90'), kStart));
  }
  EXPECT_FALSE(x64::DecodeJumpThunk(AsBytes(At().Frame().Call(0x500000).Raw({0x5d}).Jump(0x500000).bytes()), kStart));
  EXPECT_FALSE(x64::DecodeJumpThunk(AsBytes(At().Jump(0x500000).bytes()), kStart));
  // A constant, alone.
  const std::string constant = At().Frame().Hex("bf010000005d").Jump(0x500000).bytes();
  ASSERT_TRUE(x64::DecodeJumpThunk(AsBytes(constant), kStart).has_value());
  EXPECT_EQ(x64::DecodeJumpThunk(AsBytes(constant), kStart)->arguments, "c");
  EXPECT_EQ(x64::DecodeJumpThunk(AsBytes(constant), kStart)->target.value, 0x500000u);
  EXPECT_FALSE(x64::DecodeJumpThunk(AsBytes(constant.substr(0, constant.size() - 1)), kStart));
  EXPECT_FALSE(x64::DecodeJumpThunk(AsBytes(At().Frame().Hex("bf0100000089d65d").Jump(0x500000).bytes()), kStart));
  // The second argument before the first.
  EXPECT_FALSE(x64::DecodeJumpThunk(AsBytes(At().Frame().Hex("89d689f75d").Jump(0x500000).bytes()), kStart));
}

TEST(CodeScanX64Test, CopiedGuids) {
  const std::string code = At().CopyGuid(0x600010).bytes();
  EXPECT_EQ(x64::CopiedGuid(AsBytes(code), kStart), VirtualAddress{0x600010});
  std::string aligned = code;
  aligned[5] = 0x28;  // movaps
  EXPECT_EQ(x64::CopiedGuid(AsBytes(aligned), kStart), VirtualAddress{0x600010});
  for (const size_t i : {0, 4, 6, 11, 13, 14, 15}) {
    std::string other = code;
    other[i] ^= 1;
    EXPECT_FALSE(x64::CopiedGuid(AsBytes(other), kStart)) << i;
  }
  EXPECT_FALSE(x64::CopiedGuid(AsBytes(code.substr(1)), kStart));
  EXPECT_FALSE(x64::CopiedGuid(AsBytes(code + '\xc3'), kStart));
}

TEST(CodeScanX64Test, SettingsOfPostGc) {
  const std::string code = At().PostGc(0x600100, 0x500000, 0x500100).Return().bytes();
  const auto find = [](const std::string& bytes, uint64_t done = 0x500000, uint64_t end = 0x500100) {
    return x64::SettingsOfPostGc(AsBytes(bytes), kStart, {done}, {end});
  };
  ASSERT_TRUE(find(code).has_value());
  EXPECT_EQ(find(code)->at.value, 0x600100u);
  EXPECT_FALSE(find(code, 0x500001));
  EXPECT_FALSE(find(code, 0x500000, 0x500101));
  for (size_t size = 0; size + 2 < code.size(); ++size) EXPECT_FALSE(find(code.substr(0, size))) << size;
  // Any other byte of it, and it is another function: a changed distance is another field.
  for (size_t i = 4; i + 2 < code.size(); ++i) {
    std::string other = code;
    other[i] ^= 0x20;
    EXPECT_FALSE(find(other)) << i;
  }
  // Twice.
  const std::string twice = At().PostGc(0x600100, 0x500000, 0x500100).PostGc(0x600200, 0x500000, 0x500100).bytes();
  EXPECT_FALSE(find(twice));
}

// libclrjit.so 11.0.0 at 0xa2380.
constexpr std::string_view kCompileMethodOf11 =
    "\x55\x48\x89\xe5\x41\x57\x41\x56\x41\x55\x41\x54\x53\x48\x83\xec\x58\x4d\x89\xce\x4c\x89\x45\x80\x49\x89"
    "\xd7\x49\x89\xf4\x64\x48\x8b\x04\x25\x28\x00\x00\x00\x48\x89\x45\xd0\x31\xdb\x4c\x8d\x6d\x90\x49\x89\x5d"
    "\x10\x0f\x57\xc0\x41\x0f\x29\x45\x00\x48\x8b\x06\x48\x89\xf7\x4c\x89\xee\xba\x18\x00\x00\x00\xff\x90\xb8"
    "\x05\x00\x00\x49\x8b\x45\x10\x41\x0f\x28\x45\x00\x4c\x8d\x55\xb0\x41\x0f\x29\x02\x49\x89\x42\x10\x4c\x8d"
    "\x45\x88\x49\x89\x18\x49\x8b\x3f\x49\x8b\x77\x08\x4c\x89\xe2\x4c\x89\xf9\x4d\x89\xf1\x53\x41\x52\xe8\x3b"
    "\x00\x00\x00\x48\x83\xc4\x10\x85\xc0\x75\x0b\x48\x8b\x4d\x88\x48\x8b\x55\x80\x48\x89\x0a\x64\x48\x8b\x0c"
    "\x25\x28\x00\x00\x00\x48\x3b\x4d\xd0\x75\x0f\x48\x83\xc4\x58\x5b\x41\x5c\x41\x5d\x41\x5e\x41\x5f\x5d\xc3"
    "\xe8\x75\xb4\x31\x00"sv;

TEST(CodeScanX64Test, CompileMethodOf11) {
  const std::string code(kCompileMethodOf11);
  ASSERT_EQ(code.size(), 0xbbu);
  const auto site = x64::ReturnOfCompileMethod(AsBytes(code));
  ASSERT_TRUE(site.has_value());
  EXPECT_EQ(code.substr(site->offset, 2), "\x75\x0f");  // jne to the last call
  EXPECT_EQ(site->form, CompileForm::kEntryOnFrame);
  // Any other byte of it, and it is another function, but for a slot's number and two distances.
  for (size_t i = 0; i < code.size(); ++i) {
    std::string other = code;
    other[i] ^= 0x20;
    const bool any = i == 0x4d || i == 0x4e || (i >= 0x81 && i < 0x85) || i >= 0xb7;
    EXPECT_EQ(x64::ReturnOfCompileMethod(AsBytes(other)).has_value(), any) << i;
  }
}

TEST(CodeScanX64Test, CompileMethodAsAWhole) {
  const std::string code = At().CompileMethod(0x500000).bytes();
  ASSERT_EQ(code.size(), 0xb4u);
  const auto site = x64::ReturnOfCompileMethod(AsBytes(code));
  ASSERT_TRUE(site.has_value());
  EXPECT_EQ(code.substr(site->offset, 2), "\x75\x0d");  // jne to the last call
  EXPECT_EQ(site->form, CompileForm::kEntryInRegister);
  EXPECT_FALSE(x64::ReturnOfCompileMethod(AsBytes(code.substr(0, 0xb3))));
  EXPECT_FALSE(x64::ReturnOfCompileMethod(AsBytes(code + '\xcc')));
  EXPECT_FALSE(x64::ReturnOfCompileMethod({}));
}

}  // namespace
}  // namespace clrsampler
