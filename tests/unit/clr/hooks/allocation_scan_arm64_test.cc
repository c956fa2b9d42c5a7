// Code as it stands in files for linux-arm64: libcoreclr.so of 9.0.23, 10.0.15 and 11.0.0, libclrgc.so of 10.0.15, and
// a single-file host of 8.0.34.
#include "clr/hooks/allocation_scan_arm64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr VirtualAddress kStart{0x401000};

std::string Code(absl::string_view hex) { return absl::HexStringToBytes(hex); }
ProbeValue Register(int number) { return {ProbeValue::Kind::kRegister, number}; }
ProbeValue Constant(int number) { return {ProbeValue::Kind::kConstant, number}; }
AllocationReports Find(const std::string& code) { return arm64::FindAllocationReports(AsBytes(code), kStart); }

std::string Replaced(std::string code, absl::string_view from, absl::string_view to) {
  const size_t at = code.find(Code(from));
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? code : code.replace(at, Code(from).size(), Code(to));
}

// fire_etw_allocation_event of each collector. In .NET 8 one branch is for both, the level and the keyword.
const std::string kServer8 = Code(
    "fd7bbca9f70b00f9f65702a9f44f03a9fd030091f60300aae003022af30304aaf40303aaf50301aa0b95fd97e81f00b0e91f00b0082940f929"
    "2d40f9080140b9290140b91f1500712901001224a9407ac1000054f44f43a9f65742a9f70b40f9fd7bc4a8c0035fd6d6aa55b9f703002ab77f"
    "fa97080040f9e10315aae203172ae303162ae40314aa063940f9e50313aaf44f43a9f65742a9f70b40f9fd7bc4a8c0001fd6");
const std::string kWorkstation9 = Code(
    "fd7bbda9f65701a9f44f02a9fd030091f50300aae003012af30303aaf40302aacee3fe97881200f008b10791080140b91f150071ab00005488"
    "1200f008d10791080140b9a8000037f44f42a9f65741a9fd7bc3a8c0035fd6f603002a298bfa97080040f9e10315aae203162ae3031f2ae403"
    "14aa063940f9e50313aaf44f42a9f65741a9fd7bc3a8c0001fd6");
const std::string kServer10 = Code(
    "fd7bbca9f70b00f9f65702a9f44f03a9fd030091f60300aae003022af30304aaf40303aaf50301aad79bfd971f2003d568a07a10d68a55b908"
    "0140b91f150071ab0000541f2003d5e89f7a10080140b9c8000037f44f43a9f70b40f9f65742a9fd7bc4a8c0035fd6f703002afcd8fa970800"
    "40f9e10315aae203172ae303162ae40314aa063940f9e50313aaf44f43a9f70b40f9f65742a9fd7bc4a8c0001fd6");

// A collector in a library of its own, which asks the runtime for the sink.
const std::string kOwnServer10 = Code(
    "fd7bbca9f70b00f9f65702a9f44f03a9fd030091f60300aae003022af30304aaf40303aaf50301aadba1fd971f2003d508591310d6f257b908"
    "0140b91f150071ab0000541f2003d588581310080140b9c8000037f44f43a9f70b40f9f65742a9fd7bc4a8c0035fd6a80000d0f703002a0849"
    "40f9080140f9090140f9e00308aa29a140f920013fd6080040f9e10315aae203172ae303162ae40314aa063940f9e50313aaf44f43a9f70b40"
    "f9f65742a9fd7bc4a8c0001fd6");

TEST(AllocationScanArm64Test, ACollectorOfItsOwnAsksForTheSinkOnce) {
  const AllocationFacts server{Register(1), Register(2), Register(3), true};
  EXPECT_EQ(arm64::FactsOfReport(AsBytes(kOwnServer10)), server);
  // blr x9 in the place of a call before the keyword is tested, and of one more behind it.
  EXPECT_FALSE(arm64::FactsOfReport(AsBytes(Replaced(kOwnServer10, "1f2003d5", "20013fd6"))).has_value());
  EXPECT_FALSE(arm64::FactsOfReport(AsBytes(Replaced(kOwnServer10, "e00308aa", "20013fd6"))).has_value());
}

TEST(AllocationScanArm64Test, TheReportSaysWhereItsFactsAre) {
  const AllocationFacts workstation{Register(0), Register(1), Register(2), false};
  const AllocationFacts server{Register(1), Register(2), Register(3), true};
  EXPECT_EQ(arm64::FactsOfReport(AsBytes(kServer8)), server);
  EXPECT_EQ(arm64::FactsOfReport(AsBytes(kWorkstation9)), workstation);
  EXPECT_EQ(arm64::FactsOfReport(AsBytes(kServer10)), server);
}

TEST(AllocationScanArm64Test, AnythingElseIsNoReport) {
  const auto is_report = [](const std::string& code) { return arm64::FactsOfReport(AsBytes(code)).has_value(); };
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "063940f9", "063d40f9"))) << "slot 15";
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "1f150071", "1f110071"))) << "level 4";
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "ab000054", "ac000054"))) << "b.gt";
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "a8000037", "a8000837"))) << "bit 1";
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "a8000037", "a8000036"))) << "where the bit is not set";
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "e10315aa", "e1031faa"))) << "its bytes are 0";
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "e10315aa", "e103152a"))) << "half of its bytes";
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "c0001fd6", "00011fd6"))) << "br x8, which is the table";
  EXPECT_FALSE(is_report(Replaced(kWorkstation9, "f603002a", "167c0a9b"))) << "mul: not one of a report";
  EXPECT_FALSE(is_report(Replaced(kServer8, "24a9407a", "20a9407a"))) << "ccmp, equal is not set below the level";
  EXPECT_FALSE(is_report(Replaced(kServer8, "24a9407a", "24b9407a"))) << "ccmp, lt";
  EXPECT_FALSE(is_report(Replaced(kServer8, "29010012", "2a010012"))) << "and w10: another register is compared";
}

TEST(AllocationScanArm64Test, NothingIsReadBeyondTheEnd) {
  for (const std::string& code : {kServer8, kWorkstation9, kServer10}) {
    for (size_t size = 0; size < code.size(); ++size) {
      EXPECT_FALSE(arm64::FactsOfReport(AsBytes(code.substr(0, size)))) << size;
    }
  }
}

// Callers of the report: with stores, or what other instructions need, between the comparison and the branch.
TEST(AllocationScanArm64Test, TheFunctionThatIsCalledAboveTheLimit) {
  const std::string caller9 = Code(
      "3f6440f12a1d0cf921111af949020054088486520aa78252e00317aa3f6928f8e8020a8b0900801209fd9f88e30314aae4031caaa2835ff8"
      "45020294");
  const std::string caller10 =
      Code("1f6440f1890900b029b12891a90100545f7928f808008012e103152ae20314aae3031baa28fd9f88ddcf0094");
  EXPECT_TRUE(arm64::MayReportAllocations(AsBytes(caller9)));
  EXPECT_THAT(Find(caller9).called, ElementsAre(VirtualAddress{kStart.value + 0x4a8e6c - 0x428520}));
  EXPECT_THAT(Find(caller9).sites, IsEmpty());
  EXPECT_THAT(Find(caller10).called, ElementsAre(VirtualAddress{kStart.value + 0x5cb8ec - 0x597950}));
}

TEST(AllocationScanArm64Test, OtherUsesOfTheLimitCallNoReport) {
  EXPECT_THAT(Find(Code("1f6540f1c900005459f8ff97")).called, IsEmpty()) << "a call right behind the branch";
  // cmp x1, #25, lsl #12; cmp x2, x3; b.ls; mov x0, x1; bl: the branch is of the other comparison.
  EXPECT_THAT(Find(Code("3f6440f15f0003eb69000054e00301aa01000094")).called, IsEmpty());
  EXPECT_THAT(Find(Code("3f6440f168000054e00301aa01000094")).called, IsEmpty()) << "b.hi";
  EXPECT_THAT(Find(Code("3f6840f169000054e00301aa01000094")).called, IsEmpty()) << "104 KB";
  EXPECT_FALSE(arm64::MayReportAllocations(AsBytes(Code("3f6840f169000054e00301aa01000094"))));
}

// .NET 11: the sum begins anew, and the report stands in the function, its rare part far behind.
class AllocationSiteArm64Test : public testing::Test {
 protected:
  // x26 is the sum, x27 the object, both for good; the limit is in a register. mov w9, #0x9000 ... cmp x26, x9 ... csel
  static constexpr absl::string_view kReset =
      "0900925208010b8b2900a072880100f948010b8b5f0309eb882103f989c940f9e8839a9a881503f9";
  static constexpr absl::string_view kSite = "080092522800a0725f0308ebe9000054a88358f81b0140f9281e0090081944b91f150071";
  static constexpr absl::string_view kRare =
      "081e00f0082144b988330736fc030daace9e0994080040f9e54740f9e1031aaae2031f2ae3031f2ae4031baa083940f900013fd6";
  // A member of one of several heaps: x25 is the sum, x26 the object, w27 the kind.
  static constexpr absl::string_view kResetOfHeap = "3f6740f128e90bf9e883999a285d1af9";
  static constexpr absl::string_view kSiteOfHeap = "3f6740f109010054090300909a0240f91b5b75b8788a55b9291944b93f150071";
  static constexpr absl::string_view kRareOfHeap =
      "09030090292144b949f80736f7030daa2314fc97080040f9a5835ff8e10319aae2031b2ae303182ae4031aaa083940f900013fd6";

  // With the branch to the rare part, which stands right behind the function's end.
  static std::string Function(absl::string_view reset, absl::string_view site, const std::string& rare) {
    return Code(reset) + Code(site) + Code("4a000054" /* b.ge +8 */) + Code("c0035fd6") + rare;
  }
  static std::string Function(absl::string_view from, absl::string_view to) {
    return Function(kReset, kSite, Replaced(Code(kRare), from, to));
  }
};

TEST_F(AllocationSiteArm64Test, ItsFactsAreFollowedToTheRegistersAtTheBranch) {
  const std::string code = Function(kReset, kSite, Code(kRare));
  EXPECT_TRUE(arm64::MayReportAllocations(AsBytes(code)));
  const AllocationReports found = Find(code);
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.unknown_sites, 0u);
  EXPECT_EQ(found.resets, 1u);
  EXPECT_EQ(found.sites[0].offset, code.find(Code("4a000054")));
  EXPECT_EQ(found.sites[0].facts, (AllocationFacts{Register(26), Constant(0), Register(27), false}));
  EXPECT_THAT(found.called, IsEmpty());
}

TEST_F(AllocationSiteArm64Test, TheLimitMayBePartOfTheComparison) {
  const AllocationReports found = Find(Function(kResetOfHeap, kSiteOfHeap, Code(kRareOfHeap)));
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.resets, 1u);
  EXPECT_EQ(found.sites[0].facts, (AllocationFacts{Register(25), Register(27), Register(26), false}));
}

TEST_F(AllocationSiteArm64Test, AWordOfTheFrameIsTheOneAtTheBranchUnlessSomethingIsStored) {
  // ldur x4, [x29, #-120]
  AllocationReports found = Find(Function("e4031baa", "a48358f8"));
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.sites[0].facts.object, (ProbeValue{ProbeValue::Kind::kFrame, -120}));
  // ldr x4, [sp, #136]: relative to another register
  EXPECT_EQ(Find(Function("e4031baa", "e44740f9")).unknown_sites, 1u);
  // str x13, [sp, #8] before it, instead of mov x28, x13
  const std::string stored = Replaced(Code(kRare), "fc030daa", "ed0700f9");
  EXPECT_EQ(Find(Function(kReset, kSite, stored)).sites.size(), 1u);
  found = Find(Function(kReset, kSite, Replaced(stored, "e4031baa", "a48358f8")));
  EXPECT_EQ(found.unknown_sites, 1u);
  EXPECT_THAT(found.sites, IsEmpty());
}

TEST_F(AllocationSiteArm64Test, AnotherSumIsNotUnderstood) {
  const AllocationReports found = Find(Function("e1031aaa", "e1031caa"));  // mov x1, x28
  EXPECT_THAT(found.sites, IsEmpty());
  EXPECT_EQ(found.unknown_sites, 1u);
  // ldr x26, [x8] on the way to the branch: what is there was not compared.
  const std::string site = absl::BytesToHexString(Replaced(Code(kSite), "1b0140f9", "1a0140f9"));
  EXPECT_EQ(Find(Function(kReset, site, Code(kRare))).unknown_sites, 1u);
}

TEST_F(AllocationSiteArm64Test, ACallClobbersWhatItMay) {
  // mov x4, x13 instead of mov x4, x27: what the call left there.
  EXPECT_EQ(Find(Function("e4031baa", "e4030daa")).unknown_sites, 1u);
  // mov x4, x28, which holds since before the call what x13 was: a call keeps x28.
  const AllocationReports found = Find(Function("e4031baa", "e4031caa"));
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.sites[0].facts.object, Register(13));
}

TEST_F(AllocationSiteArm64Test, AReportBehindNoComparisonIsNotUnderstood) {
  // cmp x26, #26, lsl #12 instead of the comparison with 100 KB.
  const std::string site = absl::BytesToHexString(Replaced(Code(kSite), "5f0308eb", "5f6b40f1"));
  const AllocationReports found = Find(Function(kReset, site, Code(kRare)));
  EXPECT_THAT(found.sites, IsEmpty());
  EXPECT_EQ(found.unknown_sites, 1u);
  // The same branch to a call of another slot is no report at all.
  EXPECT_EQ(Find(Function(kReset, site, Replaced(Code(kRare), "083940f9", "083d40f9"))).unknown_sites, 0u);
}

TEST_F(AllocationSiteArm64Test, TheLimitInARegisterHasTwoHalves) {
  // movk w8, #2, lsl #16: 164 KB.
  std::string site = absl::BytesToHexString(Replaced(Code(kSite), "2800a072", "4800a072"));
  EXPECT_EQ(Find(Function(kReset, site, Code(kRare))).unknown_sites, 1u);
  // ldr x8, [x8] instead of movk.
  site = absl::BytesToHexString(Replaced(Code(kSite), "2800a072", "080140f9"));
  EXPECT_EQ(Find(Function(kReset, site, Code(kRare))).unknown_sites, 1u);
}

TEST_F(AllocationSiteArm64Test, NothingIsReadBeyondTheEnd) {
  const std::string code = Function(kReset, kSite, Code(kRare));
  for (size_t size = 0; size < code.size(); ++size) {
    EXPECT_THAT(Find(code.substr(0, size)).sites, IsEmpty()) << size;
  }
  // The branch leads behind the function's end, and before its beginning.
  EXPECT_EQ(Find(Replaced(code, "4a000054", "eaff7f54")).unknown_sites, 1u);
  EXPECT_EQ(Find(Replaced(code, "4a000054", "0a008054")).unknown_sites, 1u);
}

}  // namespace
}  // namespace clrsampler
