#include "output/annotated_method.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class AnnotatedMethodTest : public testing::Test {
 protected:
  AnnotatedMethodTest() {
    file_ = builder_.String("/src/Cart.cs");
    builder_.Source(file_, 0, "first\nsecond\t\x1b[2J\n");
  }
  void Add(absl::string_view name, absl::string_view tier, uint64_t address, std::vector<ModelCodeWeight> self) {
    ModelCode code{.frame = builder_.Frame({.name = builder_.String(name), .tier = builder_.String(tier)}), .pid = 7};
    code.address = address;
    code.bytes = "\x55\xe8\x01\xc3";
    code.lines = {{0, file_, 1, 0}, {1, file_, 2, 0}, {3, 0, 0, 0}};
    code.self = std::move(self);
    EXPECT_TRUE(builder_.Code(std::move(code)));
  }
  ProfileModel Build() {
    builder_.Add({.thread = builder_.Thread({}), .stack = kRootNode, .weight = 40});
    return *std::move(builder_).Build();
  }
  static std::vector<Instruction> Disassembled(const ModelCode&) {
    return {{0, 1, "push rbp"}, {1, 2, "call 0x2000"}, {3, 1, "jmp 0x1001"}};
  }

  ProfileModelBuilder builder_;
  StringIndex file_;
};

TEST_F(AnnotatedMethodTest, LinesAndInstructionsHaveTheirSamples) {
  Add("Shop.Cart.Total", "OptimizedTier1", 0x1000, {{0, 1}, {1, 6}, {2, 2}, {3, 1}});
  Add("Shop.Cart.Pay", "", 0x2000, {});
  const ProfileModel model = Build();
  EXPECT_EQ(AnnotatedMethod(model, {0}, Disassembled),
            "Shop.Cart.Total: 10 samples in its own code, of 40\n"
            "\n"
            " samples       %  line\n"
            "       1   10.0%  [no line]\n"
            "       1   10.0%  Cart.cs:1  first\n"
            "       8   80.0%  Cart.cs:2  second    ?[2J\n"
            "\n"
            "OptimizedTier1, x86-64, 4 bytes at 1000 in process 7: 10 samples\n"
            " samples       %  offset  instruction\n"
            "                  Cart.cs:1  first\n"
            "       1   10.0%  000000  push rbp\n"
            "                  Cart.cs:2  second    ?[2J\n"
            "       8   80.0%  000001  call 0x2000 (Shop.Cart.Pay)\n"
            "                  [no line]\n"
            "       1   10.0%  000003  jmp 0x1001 (+000001)\n");
}

TEST_F(AnnotatedMethodTest, WithoutADisassemblerOffsetsHaveTheirSamples) {
  Add("Shop.Cart.Total", "", 0x1000, {{1, 6}});
  const std::string text = AnnotatedMethod(Build(), {0}, [](const ModelCode&) { return std::vector<Instruction>(); });
  EXPECT_THAT(text, HasSubstr("       6  100.0%  000001  [no text]\n"));
}

TEST_F(AnnotatedMethodTest, BodiesWithoutASampleAreShownWhereTheyAreAskedFor) {
  Add("Shop.Cart.Total", "QuickJitted", 0x1000, {});
  Add("Shop.Cart.Total", "OptimizedTier1", 0x2000, {{0, 1}});
  const ProfileModel model = Build();
  const std::vector<size_t> bodies = *BodiesOfMethod(model, "Cart.Total");
  EXPECT_THAT(bodies, ElementsAre(1, 0));
  const std::string some = AnnotatedMethod(model, bodies, Disassembled);
  EXPECT_THAT(some, HasSubstr("1 more without a sample"));
  EXPECT_THAT(some, Not(HasSubstr("QuickJitted")));
  EXPECT_THAT(AnnotatedMethod(model, bodies, Disassembled, {.all_bodies = true}), HasSubstr("QuickJitted"));
}

TEST_F(AnnotatedMethodTest, AWholeNameMeansItsMethodAndAPartMayMeanSeveral) {
  Add("Shop.Cart.Total", "", 0x1000, {{0, 1}});
  Add("Shop.Cart.TotalOf", "", 0x2000, {{0, 9}});
  const ProfileModel model = Build();
  EXPECT_THAT(*BodiesOfMethod(model, "Shop.Cart.Total"), ElementsAre(0));
  EXPECT_THAT(*BodiesOfMethod(model, "Total"), ElementsAre(0));
  EXPECT_THAT(*BodiesOfMethod(model, "talOf"), ElementsAre(1));
  const absl::Status several = BodiesOfMethod(model, "Cart").status();
  EXPECT_THAT(several.message(), HasSubstr("2 methods: Shop.Cart.TotalOf, Shop.Cart.Total"));
  const absl::Status none = BodiesOfMethod(model, "Order").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(HintOf(none), HasSubstr("Shop.Cart.TotalOf"));
}

TEST_F(AnnotatedMethodTest, AProfileWithoutCodeSaysHowToGetIt) {
  const absl::Status status = BodiesOfMethod(Build(), "Total").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(HintOf(status), HasSubstr("--code"));
}

TEST(DisassemblerTest, InstructionsOfBothMachinesAndWhatIsNone) {
  const absl::StatusOr<Disassembler> disassembler = Disassembler::Open();
  ASSERT_TRUE(disassembler.ok()) << disassembler.status();
  const auto texts = [&](CodeMachine machine, absl::string_view code, uint64_t address) {
    std::vector<std::string> all;
    uint32_t end = 0;
    for (const Instruction& instruction : disassembler->All(machine, code, address)) {
      EXPECT_EQ(instruction.offset, end);
      end += instruction.size;
      all.push_back(instruction.text);
    }
    EXPECT_EQ(end, code.size());
    return all;
  };
  EXPECT_THAT(texts(CodeMachine::kX64, "\x55\x48\x8b\xec\xeb\xfe\xc3", 0x1000),
              ElementsAre("push rbp", "mov rbp, rsp", "jmp 0x1004", "ret"));
  EXPECT_THAT(texts(CodeMachine::kX64, "\x06\xc3\x48", 0), ElementsAre(".byte 0x06", "ret", ".byte 0x48"));
  EXPECT_THAT(texts(CodeMachine::kArm64, "\xfd\x7b\xbf\xa9\xc0\x03\x5f\xd6", 0x1000),
              ElementsAre("stp x29, x30, [sp, #-0x10]!", "ret"));
  EXPECT_THAT(texts(CodeMachine::kArm64, "\xc0\x03", 0), Not(IsEmpty()));
  EXPECT_THAT(texts(CodeMachine::kX64, "", 0), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
