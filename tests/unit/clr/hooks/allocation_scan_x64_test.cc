// Code as it stands in libcoreclr.so of 8.0.34, 10.0.15 and 11.0.0 and in libclrgc.so of 10.0.14 (linux-x64), function
// by function.
#include "clr/hooks/allocation_scan_x64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

using testing::IsEmpty;

constexpr VirtualAddress kStart{0x401000};
// DWARF numbers.
constexpr int kDx = 1, kCx = 2, kBx = 3, kSi = 4, kDi = 5;

std::string Code(const char* hex) { return absl::HexStringToBytes(hex); }
ProbeValue Register(int number) { return {ProbeValue::Kind::kRegister, number}; }
ProbeValue Constant(int number) { return {ProbeValue::Kind::kConstant, number}; }

// fire_etw_allocation_event of each collector.
const std::string kWorkstation8 = Code(
    "554889e5415741564154534889cb4989d64989ff89f7e88517fbff4189c4488d05275f20008338057c36488d05235f20008b0083e0017428e8"
    "83b6e7ff488b084c8b59704889c74c89fe4489e231c94d89f04989d95b415c415e415f5d41ffe35b415c415e415f5dc3");
const std::string kServer10 = Code(
    "554889e5415741564155415453504c89c34989ce4989f74989fc89d7e8cfb8f5ff458ba42488150000488d0db4ad0d008b0983f9057c0f488d"
    "0daead0d00f70101000000750f4883c4085b415c415d415e415f5dc34189c5e823dfe9ff488b084c8b59704889c74c89fe4489ea4489e14d89"
    "f04989d94883c4085b415c415d415e415f5d41ffe3");
const std::string kWorkstation10 = Code(
    "554889e5415741564154534889cb4989d64989ff89f7e82565fbff488d0d22a00d008b0983f9057c0f488d0d1ca00d00f70101000000750951"
    "5b415c415e415f5dc3");

// A collector in a library of its own, which asks the runtime for the sink.
const std::string kOwnServer10 = Code(
    "554889e5415741564155415453504c89c34989ce4989f74989fc89d7e8ef15f6ff458ba424f0170000488d0dd45602008b0983f9057c0f488d"
    "0dce560200f70101000000750f4883c4085b415c415d415e415f5dc3488d0d145b0200488b39488b0f4189c5ff9140010000488b084c8b5970"
    "4889c74c89fe4489ea4489e14d89f04989d94883c4085b415c415d415e415f5d41ffe3");

TEST(AllocationScanX64Test, ACollectorOfItsOwnAsksForTheSinkOnce) {
  EXPECT_EQ(x64::FactsOfReport(AsBytes(kOwnServer10)),
            (AllocationFacts{Register(kSi), Register(kDx), Register(kCx), true}));
  // The call comes before the keyword is tested.
  std::string early = kOwnServer10;
  early.replace(early.find(Code("488d0dd4560200")), 7, Code("ff914001000090"));
  EXPECT_FALSE(x64::FactsOfReport(AsBytes(early)));
  std::string twice = kOwnServer10;
  twice.replace(twice.find(Code("488b39488b0f")), 6, Code("ff9140010000"));
  EXPECT_FALSE(x64::FactsOfReport(AsBytes(twice)));
  for (size_t size = 0; size < kOwnServer10.size(); ++size) {
    EXPECT_FALSE(x64::FactsOfReport(AsBytes(kOwnServer10.substr(0, size)))) << size;
  }
}

TEST(AllocationScanX64Test, TheReportSaysWhereItsFactsAre) {
  const auto workstation = x64::FactsOfReport(AsBytes(kWorkstation8));
  ASSERT_TRUE(workstation.has_value());
  EXPECT_EQ(*workstation, (AllocationFacts{Register(kDi), Register(kSi), Register(kDx), false}));
  const auto server = x64::FactsOfReport(AsBytes(kServer10));
  ASSERT_TRUE(server.has_value());
  EXPECT_EQ(*server, (AllocationFacts{Register(kSi), Register(kDx), Register(kCx), true}));
}

TEST(AllocationScanX64Test, AnythingElseIsNoReport) {
  EXPECT_FALSE(x64::FactsOfReport(AsBytes(kWorkstation10))) << "it ends before the sink is called";
  std::string other_slot = kWorkstation8;
  other_slot[other_slot.find(Code("4c8b5970")) + 3] = 0x78;
  EXPECT_FALSE(x64::FactsOfReport(AsBytes(other_slot)));
  std::string other_level = kWorkstation8;
  other_level[other_level.find(Code("833805")) + 2] = 4;
  EXPECT_FALSE(x64::FactsOfReport(AsBytes(other_level)));
  std::string other_bit = kWorkstation8;
  other_bit[other_bit.find(Code("83e001")) + 2] = 2;
  EXPECT_FALSE(x64::FactsOfReport(AsBytes(other_bit)));
  // mov rsi, rax instead of mov rsi, r15: not what it was called with.
  std::string other_bytes = kWorkstation8;
  other_bytes.replace(other_bytes.find(Code("4c89fe")), 3, Code("4889c6"));
  EXPECT_FALSE(x64::FactsOfReport(AsBytes(other_bytes)));
}

TEST(AllocationScanX64Test, NothingIsReadBeyondTheEnd) {
  for (size_t size = 0; size < kServer10.size(); ++size) {
    const std::string part = kServer10.substr(0, size);
    EXPECT_FALSE(x64::FactsOfReport(AsBytes(part))) << size;
    EXPECT_THAT(x64::FindAllocationReports(AsBytes(part), kStart).sites, IsEmpty());
  }
}

// A caller of the report: cmp r12, 0x19001; jb over it; its arguments; call. A call right behind the jump is another
// use of the limit.
TEST(AllocationScanX64Test, TheFunctionThatIsCalledAboveTheLimit) {
  const std::string caller =
      Code("554889e5") + Code("4981fc01900100") + Code("7208") + Code("4c89e7") + Code("e8f0000000") + Code("5dc3");
  EXPECT_TRUE(x64::MayReportAllocations(AsBytes(caller)));
  const AllocationReports found = x64::FindAllocationReports(AsBytes(caller), kStart);
  EXPECT_THAT(found.called, ElementsAre(VirtualAddress{kStart.value + 21 + 0xf0}));
  EXPECT_THAT(found.sites, IsEmpty());
  const std::string other = Code("554889e5") + Code("483d01900100") + Code("7205") + Code("e8f0000000") + Code("5dc3");
  EXPECT_THAT(x64::FindAllocationReports(AsBytes(other), kStart).called, IsEmpty());
  EXPECT_FALSE(x64::MayReportAllocations(AsBytes(Code("554889e55dc3"))));
}

// .NET 11: the sum begins anew, and the report stands in the function, its rare part far behind.
class AllocationSiteTest : public testing::Test {
 protected:
  static std::string Function(const char* rare) {
    const std::string reset = Code("4981fe01900100b800000000490f42c6");
    // cmp r14, 0x19001; jb; mov rax, [rbp-0xb0]; mov rbx, [rax]; mov eax, [rip]; cmp eax, 5; jge to the end of this.
    const std::string site = Code("4981fe019001007219488b8550ffffff488b188b050000000083f8050f8d01000000") + Code("c3");
    return Code("554889e5") + reset + site + Code(rare);
  }
  // test dword [rip], 1; je; call; r10 = table; the arguments; call [r10 + 0x70]
  static constexpr const char* kRare =
      "f705000000000100000074004c89bd60ffffff4d89cfe8000000004c8b104889c74c89f631d231c94989d84d89e941ff5270c3";
};

TEST_F(AllocationSiteTest, ItsFactsAreFollowedToTheRegistersAtTheBranch) {
  const std::string code = Function(kRare);
  const AllocationReports found = x64::FindAllocationReports(AsBytes(code), kStart);
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.unknown_sites, 0u);
  EXPECT_EQ(found.resets, 1u);
  EXPECT_EQ(found.sites[0].offset, code.find(Code("0f8d01000000")));
  EXPECT_EQ(found.sites[0].facts, (AllocationFacts{Register(14), Constant(0), Register(kBx), false}));
}

TEST_F(AllocationSiteTest, AWordOfTheFrameThatTheRarePartHasChangedIsNotTheOneAtTheBranch) {
  // The object is r15, which was stored into the frame on the way: mov r8, [rbp-0xa0].
  std::string stored = kRare;
  stored.replace(stored.find("4989d8"), 6, "4c8b8560ffffff");
  std::string code = Function(stored.c_str());
  AllocationReports found = x64::FindAllocationReports(AsBytes(code), kStart);
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.sites[0].facts.object, Register(15));
  // One that was not: mov r8, [rbp-0xa8].
  stored.replace(stored.find("4c8b8560ffffff"), 14, "4c8b8558ffffff");
  code = Function(stored.c_str());
  found = x64::FindAllocationReports(AsBytes(code), kStart);
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.sites[0].facts.object, (ProbeValue{ProbeValue::Kind::kFrame, -0xa8}));
}

TEST_F(AllocationSiteTest, AnotherSumIsNotUnderstood) {
  std::string other = kRare;
  other.replace(other.find("4c89f6"), 6, "4c89ee");  // mov rsi, r13
  const std::string code = Function(other.c_str());
  const AllocationReports found = x64::FindAllocationReports(AsBytes(code), kStart);
  EXPECT_THAT(found.sites, IsEmpty());
  EXPECT_EQ(found.unknown_sites, 1u);
}

TEST_F(AllocationSiteTest, ACallClobbersWhatItMay) {
  // The object is in rsi, which the call in between may change: mov r8, rsi before rsi has the bytes.
  std::string clobbered = kRare;
  clobbered.replace(clobbered.find("4989d8"), 6, "4989f0");
  clobbered.replace(clobbered.find("4c89f6"), 6, "669090");
  const std::string code = Function(clobbered.c_str());
  EXPECT_EQ(x64::FindAllocationReports(AsBytes(code), kStart).unknown_sites, 1u);
}

}  // namespace
}  // namespace clrsampler
