// The written file is read back by the parser that reads jitdumps of runtimes.
#include "output/jitdump_profile.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "status/status.h"
#include "unit/formats/jit/collected_jitdump.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JitdumpProfileTest : public ::testing::Test {
 protected:
  FrameIndex Method(absl::string_view name, absl::string_view tier = "") {
    ModelFrame frame;
    frame.kind = ModelFrameKind::kJit;
    frame.name = builder_.String(name);
    frame.tier = builder_.String(tier);
    return builder_.Frame(frame);
  }
  ModelCode Body(FrameIndex frame, uint64_t address, uint64_t time_ns = 0) {
    return {.frame = frame, .pid = 17, .address = address, .time_ns = time_ns, .bytes = "\x90\x90\x90\xc3"};
  }
  absl::Status Write(std::string& bytes) {
    const absl::StatusOr<ProfileModel> model = std::move(builder_).Build();
    EXPECT_TRUE(model.ok()) << model.status();
    return JitdumpProfileWriter().Write(*model, [&](absl::string_view piece) {
      bytes.append(piece.data(), piece.size());
      return absl::OkStatus();
    });
  }
  std::vector<std::string> ReadBack() {
    std::string bytes;
    EXPECT_TRUE(Write(bytes).ok());
    CollectedJitdump collected;
    EXPECT_TRUE(FeedAll(bytes, collected).ok());
    return collected.log;
  }
  std::string Refusal() {
    std::string bytes;
    const absl::Status status = Write(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(HintOf(status)), HasSubstr("--pid PID -o x.jitdump"));
    EXPECT_EQ(bytes, "");
    return std::string(status.message());
  }

  ProfileModelBuilder builder_;
};

TEST_F(JitdumpProfileTest, ABodyComesWithItsLinesBeforeIt) {
  builder_.meta().start_monotonic_ns = 5000;
  ModelCode code = Body(Method("Shop.Cart.Total", "OptimizedTier1"), 4096, 70);
  const StringIndex file = builder_.String("/src/Cart.cs"), other = builder_.String("/src/Tax.cs");
  code.lines = {{0, file, 57, 9}, {1, other, 3, 0}, {2, other, 4, 0}};
  builder_.Code(code);
  EXPECT_THAT(ReadBack(),
              ElementsAre("header 1 40 62 pid 17 at 5000",
                          "debug 5000 4096 of 4 [4096 57 0 /src/Cart.cs] [4097 3 0 /src/Tax.cs] [4098 4 0 /src/Tax.cs]"
                          " [4100 4 0 /src/Tax.cs]",
                          "load 5000 1000 4 Shop.Cart.Total[OptimizedTier1] vma 4096 pid 17 tid 17 index 1 name@241 "
                          "body@273+4",
                          "close 5000"));
}

TEST_F(JitdumpProfileTest, CodeWithoutALineEndsTheLineBefore) {
  ModelCode code = Body(Method("A"), 4096);
  code.lines = {{0, 0, 0, 0}, {1, builder_.String("a.cs"), 7, 0}, {2, 0, 0, 0}};
  builder_.Code(code);
  EXPECT_THAT(ReadBack()[1], HasSubstr(" of 3 [4097 7 0 a.cs] [4098 0 0 a.cs] [4100 0 0 a.cs]"));
}

TEST_F(JitdumpProfileTest, NamesOfFilesThatTheFormatCannotHoldGiveNoLine) {
  ModelCode code = Body(Method("A"), 4096);
  code.lines = {{0, builder_.String("\xff"), 7, 0},
                {1, builder_.String(absl::string_view("a\0b", 3)), 7, 0},
                {2, builder_.String(std::string(5000, 'a')), 7, 0}};
  builder_.Code(code);
  EXPECT_THAT(ReadBack()[1], HasSubstr("load"));
}

TEST_F(JitdumpProfileTest, WithManyLinesOfManyFilesABodyIsThereWithoutLines) {
  ModelCode code = Body(Method("A"), 4096);
  code.bytes.assign(10'000, '\x90');
  const StringIndex files[] = {builder_.String(std::string(4000, 'a')), builder_.String(std::string(4000, 'b'))};
  for (uint32_t i = 0; i < 10'000; ++i) code.lines.push_back({i, files[i % 2], 1, 0});
  builder_.Code(code);
  EXPECT_THAT(ReadBack()[1], HasSubstr("load"));
}

TEST_F(JitdumpProfileTest, ABodyInPlaceOfOthersCountsFromItsFirstSample) {
  builder_.meta().start_monotonic_ns = 5000;
  builder_.Code(Body(Method("Late"), 4096, 900));
  builder_.Code(Body(Method("Early"), 4098, 100));
  builder_.Code(Body(Method("Elsewhere"), 4102, 500));
  builder_.Code(Body(Method("Last"), 4101, 901));
  std::string bytes;
  ASSERT_TRUE(Write(bytes).ok());
  CollectedJitdump collected;
  ASSERT_TRUE(FeedAll(bytes, collected).ok());
  EXPECT_THAT(collected.loads,
              ElementsAre("5000 1002 4 Early", "5000 1006 4 Elsewhere", "5900 1000 4 Late", "5901 1005 4 Last"));
}

TEST_F(JitdumpProfileTest, WithoutTheClockBodiesCountForAllSamples) {
  ModelCode code = Body(Method("A"), 4096, 900);
  code.machine = CodeMachine::kArm64;
  builder_.Code(code);
  EXPECT_THAT(ReadBack(), ElementsAre("header 1 40 183 pid 17 at 1", HasSubstr("load 1 1000"), "close 1"));
}

TEST_F(JitdumpProfileTest, ANameStaysOnItsLineAndInsideItsRecord) {
  builder_.Code(Body(Method(absl::string_view("A\0B\nC", 5)), 4096));
  builder_.Code(Body(Method(std::string(1 << 20, 'n')), 8192));
  std::string bytes;
  ASSERT_TRUE(Write(bytes).ok());
  CollectedJitdump collected;
  ASSERT_TRUE(FeedAll(bytes, collected).ok());
  EXPECT_THAT(collected.names, ElementsAre("A?B?C", std::string(32768, 'n')));
}

TEST_F(JitdumpProfileTest, CodeAtTheEndOfMemoryIsWritten) {
  builder_.Code(Body(Method("A"), ~uint64_t{0} - 1));
  EXPECT_THAT(ReadBack()[1], HasSubstr("load 1 fffffffffffffffe 4 A"));
}

TEST_F(JitdumpProfileTest, UnwindDataComesAsFramesBeforeItsCode) {
  ModelCode code = Body(Method("A"), 4096);
  // push rbx, pop rbx; and a part whose data is damaged.
  code.unwind = {{0, 3, "\x01\x01\x01" + std::string("\0\x01\x30\0\0", 5)}, {3, 4, "\x07"}};
  builder_.Code(code);
  // A common entry of 24 bytes, one of the function, the end; and a header with one row.
  EXPECT_THAT(ReadBack(),
              ElementsAre(HasSubstr("header"), HasSubstr("unwinding 1 76 20 76 "), HasSubstr("load"), "close 1"));
}

TEST_F(JitdumpProfileTest, RecordsOfArm64AreWrittenAsFrames) {
  ModelCode code = Body(Method("A"), 4096);
  code.machine = CodeMachine::kArm64;
  code.bytes = std::string(40, '\0');
  // set_fp, save_fplr_x 32; a part whose record has another version; save_fplr_x 16
  const std::string record("\x0a\0\0\x08\xe1\x83\xe4\xe4", 8), newer("\x0a\0\x04\x08\xe4\xe4\xe4\xe4", 8),
      funclet("\x04\0\0\x08\x81\xe4\xe4\xe4", 8);
  code.unwind = {{0, 16, record}, {16, 24, newer}, {24, 40, funclet}};
  builder_.Code(code);
  std::string bytes;
  ASSERT_TRUE(Write(bytes).ok());
  CollectedJitdump collected;
  ASSERT_TRUE(FeedAll(bytes, collected).ok());
  EXPECT_THAT(collected.log, ElementsAre(HasSubstr("header 1 40 183"), HasSubstr("unwinding 1 124 28 124 "),
                                         HasSubstr("load"), "close 1"));
  // advance_loc1 4, def_cfa_offset 32, offset 29 4, offset 30 3, advance_loc1 4, def_cfa 29 32
  EXPECT_THAT(bytes, HasSubstr("\x02\x04\x0e\x20\x9d\x04\x9e\x03\x02\x04\x0c\x1d\x20"));
}

TEST_F(JitdumpProfileTest, FramesAreSaidToLieInMemoryOnlyWhereNoOtherBodyIs) {
  // Frames of 76 bytes, 8 bytes from the beginning of a body.
  for (const uint64_t address : {uint64_t{4096}, uint64_t{4096 + 83}, uint64_t{8192}, uint64_t{8192 + 84}}) {
    ModelCode code = Body(Method("A"), address);
    if (address % 4096 == 0) code.unwind = {{0, 4, "\x01\x01\x01" + std::string("\0\x01\x30\0\0", 5)}};
    builder_.Code(code);
  }
  std::string bytes;
  ASSERT_TRUE(Write(bytes).ok());
  CollectedJitdump collected;
  ASSERT_TRUE(FeedAll(bytes, collected).ok());
  EXPECT_THAT(collected.log[1], HasSubstr("unwinding 1 76 20 0 "));
  EXPECT_THAT(collected.log[4], HasSubstr("unwinding 1 76 20 76 "));
  // The one that is not mapped has no table, and the other one has.
  EXPECT_THAT(bytes, HasSubstr("\x01\x1b\xff\xff"));
  EXPECT_THAT(bytes, HasSubstr("\x01\x1b\x03\x3b"));
}

TEST_F(JitdumpProfileTest, UnwindDataThatCannotBeReadIsLeftOut) {
  ModelCode code = Body(Method("A"), 4096);
  // It says that a push ends at byte 9 of 4.
  code.unwind = {{0, 4, "\x01\x09\x01" + std::string("\0\x09\x30\0\0", 5)}};
  builder_.Code(code);
  EXPECT_THAT(ReadBack()[1], HasSubstr("load"));
}

TEST_F(JitdumpProfileTest, AProfileWithoutCodeIsRefused) { EXPECT_THAT(Refusal(), HasSubstr("no machine code")); }

TEST_F(JitdumpProfileTest, CodeOfSeveralProcessesIsRefused) {
  ModelCode code = Body(Method("A"), 4096);
  builder_.Code(code);
  code.pid = 18;
  builder_.Code(code);
  EXPECT_THAT(Refusal(), HasSubstr("several processes"));
}

TEST_F(JitdumpProfileTest, CodeOfNobodyAndOfSeveralMachinesIsRefused) {
  ModelCode code = Body(Method("A"), 4096);
  code.pid = 0;
  builder_.Code(code);
  EXPECT_THAT(Refusal(), HasSubstr("of which process"));
  ProfileModelBuilder builder;
  builder.Frame({});
  code = {.pid = 17, .bytes = "\xc3"};
  builder.Code(code);
  code.machine = CodeMachine::kArm64;
  builder.Code(code);
  const ProfileModel model = *std::move(builder).Build();
  const absl::Status status = JitdumpProfileWriter().Write(model, [](absl::string_view) { return absl::OkStatus(); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("several machines"));
}

}  // namespace
}  // namespace clrsampler
