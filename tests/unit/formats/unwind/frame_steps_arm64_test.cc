#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/unwind/frame_steps.h"
#include "unit/formats/unwind/arm64_records.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;

FrameStep Cfa(uint32_t offset, uint8_t reg, int32_t value) { return {offset, FrameRule::kCfa, reg, value}; }
FrameStep Saved(uint32_t offset, uint8_t reg, int32_t value) { return {offset, FrameRule::kSaved, reg, value}; }

absl::StatusOr<std::vector<FrameStep>> StepsOf(const CodeBytes& function) {
  return FrameStepsOfArm64(Hex(function.unwind), Hex(function.code));
}

TEST(FrameStepsArm64Test, StepsAreThoseOfTheInstructions) {
  EXPECT_THAT(*StepsOf(kArm64Plain), ElementsAre(Cfa(4, 31, 32), Saved(4, 29, -32), Saved(4, 30, -24),
                                                 Saved(8, 19, -16), Saved(8, 20, -8), Cfa(12, 29, 32)));
  EXPECT_THAT(*StepsOf(kArm64RecordAbove),
              ElementsAre(Cfa(4, 31, 48), Saved(8, 29, -40), Saved(8, 30, -32), Saved(12, 19, -8), Cfa(16, 29, 40)));
  EXPECT_THAT(*StepsOf(kArm64Vector),
              ElementsAre(Cfa(4, 31, 32), Saved(4, 29, -32), Saved(4, 30, -24), Saved(8, 72, -8), Cfa(12, 29, 32)));
  // x29 stays that of the method.
  EXPECT_THAT(*StepsOf(kArm64Funclet),
              ElementsAre(Cfa(4, 31, 48), Saved(4, 29, -48), Saved(4, 30, -40), Saved(8, 19, -32), Saved(8, 20, -24),
                          Saved(12, 21, -16), Saved(12, 22, -8)));
}

TEST(FrameStepsArm64Test, AMethodThatReplacesAnotherOneKeepsItsFrame) {
  // set_fp; save_fplr_x 32; alloc_s 64: the code begins with stp x29,x30,[sp,#-32]!
  const char* unwind = "0a000008e18304e4";
  EXPECT_THAT(*StepsOf({kArm64Plain.code, unwind}),
              ElementsAre(Cfa(0, 31, 64), Cfa(4, 31, 96), Saved(4, 29, -96), Saved(4, 30, -88), Cfa(8, 29, 96)));
  // The same where the first instruction is sub sp,sp,#64.
  EXPECT_THAT(*StepsOf({"ff0301d1", unwind}),
              ElementsAre(Cfa(4, 31, 64), Cfa(8, 31, 96), Saved(8, 29, -96), Saved(8, 30, -88), Cfa(12, 29, 96)));
  // Both frames begin with 64 bytes: sub sp,sp,#64; stp x29,x30,[sp]
  EXPECT_THAT(*StepsOf({"ff0301d1fd7b00a9", "0a000010e1400404e4e4e4e4"}),
              ElementsAre(Cfa(0, 31, 64), Cfa(4, 31, 128), Saved(8, 29, -128), Saved(8, 30, -120), Cfa(12, 29, 128)));
  // sub sp,sp,#1,lsl #12, with alloc_m 4096
  EXPECT_THAT(*StepsOf({"ff0740d1", "0a000008c100e4e4"}), ElementsAre(Cfa(4, 31, 4096)));
}

TEST(FrameStepsArm64Test, SignedReturnsAndWhatIsDoneBefore) {
  // set_fp; save_fplr_x 16; pac_sign_lr
  EXPECT_THAT(*StepsOf({"3f2303d5", "0a000008e181fce4"}),
              ElementsAre(FrameStep{4, FrameRule::kReturnSigned, 0, 0}, Cfa(8, 31, 16), Saved(8, 29, -16),
                          Saved(8, 30, -8), Cfa(12, 29, 16)));
  // The same of a part that was split off.
  EXPECT_THAT(
      *StepsOf({"1f2003d5", "0a000010e5e181fce4e3e3e3"}),
      ElementsAre(FrameStep{0, FrameRule::kReturnSigned, 0, 0}, Saved(0, 29, -16), Saved(0, 30, -8), Cfa(0, 29, 16)));
}

TEST(FrameStepsArm64Test, AMethodThatReplacesAnotherOneTakesItsCallersRegisters) {
  // Workload.Loops.Spin of .NET 11 begins so: ldp x29,x30,[x29]; stp x29,x30,[sp,#-16]!; mov x29,sp. The codes: set_fp;
  // save_fplr_x 16; alloc_s 48.
  EXPECT_THAT(*StepsOf({"bd7b40a9fd7bbfa9fd030091", "0a000008e18103e4"}),
              ElementsAre(Cfa(0, 31, 48), Cfa(8, 31, 64), Saved(8, 29, -64), Saved(8, 30, -56), Cfa(12, 29, 64)));
}

TEST(FrameStepsArm64Test, AMethodThatReplacesASignedOneSignsItsReturnAgain) {
  // Shapes.Osr.OuterLoop of .NET 11 begins so: ldp x29,x30,[x29]; add x16,sp,#144; mov x17,x30; autia1716; mov x30,x17;
  // paciasp; stp x29,x30,[sp,#-112]!. The codes: set_fp; save_fplr_x 112; pac_sign_lr; alloc_s 144.
  EXPECT_THAT(*StepsOf({"bd7b40a9f0430291f1031eaa9f2103d5fe0311aa3f2303d5fd7bb9a9", "0a000010e18dfc09e4e4e4e4"}),
              ElementsAre(Cfa(0, 31, 144), FrameStep{24, FrameRule::kReturnSigned, 0, 0}, Cfa(28, 31, 256),
                          Saved(28, 29, -256), Saved(28, 30, -248), Cfa(32, 29, 256)));
}

TEST(FrameStepsArm64Test, FramesThatNoPrologueMakesAreErrors) {
  const auto fails = [](const char* unwind) { return !StepsOf({kArm64Plain.code, unwind}).ok(); };
  EXPECT_FALSE(fails("0a000008e18303e4"));
  EXPECT_TRUE(fails("0a000008e20141e4")) << "a record is saved where no frame is";
  EXPECT_TRUE(fails("0a0000084101e4e4")) << "half of the record lies above the frame";
  EXPECT_TRUE(fails("0a000008e20401e4")) << "x29 lies above the frame";
  std::string huge = "0a000030";
  for (int i = 0; i < 5; ++i) absl::StrAppend(&huge, "e0ffffff");
  EXPECT_TRUE(fails(absl::StrCat(huge, "e4e4e4e4").c_str())) << "more than 1 GiB";
}

}  // namespace
}  // namespace clrsampler
