// Files that compilers and linkers read: orders, call profiles and MIP profiles of made-up recordings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/mip/mip_layout.h"
#include "formats/profile/profile_reader.h"
#include "output/image_functions.h"
#include "output/profile_writer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Function {
  ModelFrameKind kind;
  const char* name;
  const char* symbol;  // "": the same as the name, or none
  const char* module;
  const char* path = "";
  uint64_t address = 0;
  uint32_t size = 0;
};

class Recording {
 public:
  Recording() { builder_.meta().period_ns = 10'000'000; }

  // Root first.
  Recording& Add(const std::vector<Function>& stack, uint64_t time_ns, uint64_t weight = 1, const char* comm = "app") {
    NodeIndex node = kRootNode;
    for (const Function& function : stack) {
      ModelFrame frame;
      frame.kind = function.kind;
      frame.name = builder_.String(function.name);
      frame.system_name = builder_.String(function.symbol);
      frame.module = builder_.String(function.module);
      frame.module_path = builder_.String(function.path);
      frame.address = function.address;
      frame.size = function.size;
      node = builder_.Node(node, builder_.Frame(frame));
    }
    ModelThread thread;
    thread.comm = builder_.String(comm);
    builder_.Add({.time_ns = time_ns, .thread = builder_.Thread(thread), .stack = node, .weight = weight});
    return *this;
  }
  ProfileMeta& meta() { return builder_.meta(); }
  ProfileModel Build() { return *std::move(builder_).Build(); }

 private:
  ProfileModelBuilder builder_;
};

absl::StatusOr<std::string> Written(const ProfileModel& model, absl::string_view format, WriterOptions options = {}) {
  std::string text;
  const absl::Status status =
      WriterOfFormat(format)->make(options)->Write(model, [&](absl::string_view piece) -> absl::Status {
        absl::StrAppend(&text, piece);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return text;
}

std::vector<std::string> Lines(const absl::StatusOr<std::string>& text) {
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<std::string> lines;
  std::string line;
  for (const char c : text.value_or("")) {
    if (c != '\n') {
      line += c;
    } else {
      if (line.front() != '#') lines.push_back(line);
      line.clear();
    }
  }
  EXPECT_EQ(line, "") << "the last line has no end";
  return lines;
}

constexpr ModelFrameKind kNative = ModelFrameKind::kNative, kAot = ModelFrameKind::kAot, kJit = ModelFrameKind::kJit,
                         kR2r = ModelFrameKind::kR2r;
const Function kMain{kNative, "main", "", "app", "/opt/app", 0x1000, 32};
const Function kTotal{kNative, "shop::Total", "_ZN4shop5TotalEv", "app", "/opt/app", 0x1020, 64};
const Function kRare{kNative, "rare", "", "app", "/opt/app", 0x1060, 16};
const Function kMalloc{kNative, "malloc", "", "libc.so.6", "/lib/libc.so.6", 0x9000, 80};

ProfileModel NativeRecording() {
  return Recording()
      .Add({kMain, kRare}, 100)
      .Add({kMain, kTotal}, 200, 5)
      .Add({kMain, kTotal, kMalloc}, 300, 40)
      .Add({kMain, {kNative, "app!0x1090", "", "app", "/opt/app", 0x1090}}, 400)
      .Add({kMain, {kNative, "malloc@plt", "", "app", "/opt/app"}}, 500)
      .Add({{ModelFrameKind::kKernel, "read", "", ""}}, 500)
      .Build();
}

TEST(OrderTest, TheProgramsSymbolsHottestFirst) {
  const absl::StatusOr<std::string> text = Written(NativeRecording(), "order");
  // main waits for all of them, but does nothing itself.
  EXPECT_THAT(Lines(text), ElementsAre("_ZN4shop5TotalEv", "rare", "main"));
  EXPECT_TRUE(absl::StartsWith(*text,
                               "# 3 functions of /opt/app (and 2 frames without a name), hottest first; "
                               "not here: libc.so.6 (87.0 %)\n"))
      << *text;
}

TEST(OrderTest, FirstSeenFirst) {
  EXPECT_THAT(Lines(Written(NativeRecording(), "order", {.function_order = FunctionOrder::kFirst})),
              ElementsAre("main", "rare", "_ZN4shop5TotalEv"));
}

TEST(OrderTest, WithoutTimesNothingIsFirst) {
  const ProfileModel model = Recording().Add({kMain}, kNoTime).Build();
  const auto text = Written(model, "order", {.function_order = FunctionOrder::kFirst});
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(HintOf(text.status()), HasSubstr(".json"));
  EXPECT_THAT(Lines(Written(model, "order")), ElementsAre("main"));
}

TEST(OrderTest, AModuleIsChosenByNameOrPath) {
  for (const char* module : {"libc.so.6", "/lib/libc.so.6"}) {
    EXPECT_THAT(Lines(Written(NativeRecording(), "order", {.module = module})), ElementsAre("malloc"));
  }
  const auto none = Written(NativeRecording(), "order", {.module = "libm.so.6"});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(HintOf(none.status()), "sampled were app (13.0 %), libc.so.6 (87.0 %)");
}

TEST(OrderTest, WithoutTheProgramTheImageWithMostSamples) {
  std::string note;
  WriterOptions options;
  options.note = [&](absl::string_view text) { note = std::string(text); };
  Recording recording;
  recording.Add({kMain, kMalloc}, 1, 2, "renamed");
  EXPECT_THAT(Lines(Written(recording.Build(), "order", options)), ElementsAre("malloc"));
  EXPECT_EQ(note, "1 function of /lib/libc.so.6, hottest first; --module NAME takes another: app (0.0 %)");
}

TEST(OrderTest, AProgramsNameMayBeCut) {
  const Function work{kNative, "work", "", "a-program-of-a-long-name", "/opt/a-program-of-a-long-name"};
  EXPECT_THAT(Lines(Written(Recording().Add({work, kMalloc}, 1, 9, "a-program-of-a-").Build(), "order")),
              ElementsAre("work"));
}

TEST(OrderTest, NativeAotSymbolsOfAllAssembliesAreOneImage) {
  const Function main{kAot, "Program.Main", "app_Program__Main", "app", "/opt/app"};
  const Function add{kAot, "System.Collections.Generic.List<int>.Add",
                     "S_P_CoreLib_System_Collections_Generic_List_1<Int32>__Add", "System.Private.CoreLib", "/opt/app"};
  EXPECT_THAT(Lines(Written(Recording().Add({main, add}, 1, 3).Build(), "order")),
              ElementsAre("S_P_CoreLib_System_Collections_Generic_List_1<Int32>__Add", "app_Program__Main"));
}

TEST(OrderTest, LinesAreOneSymbolEachWhateverNamesHold) {
  const Function hostile[] = {{kNative, "x", "two\nlines", "app"},
                              {kNative, "x", "# no comment", "app"},
                              {kNative, "x", "sp ace", "app"},
                              {kNative, "shop::Order::Total", "", "app"},
                              {kNative, "operator()(int)", "", "app"}};
  Recording recording;
  recording.Add({kMain}, 1);
  for (const Function& function : hostile) recording.Add({function}, 2);
  EXPECT_THAT(Lines(Written(recording.Build(), "order")), ElementsAre("main"));
  // The file's own lines, too.
  const Function path{kNative, "main", "", "app", "/opt/a\nevil"};
  EXPECT_THAT(Lines(Written(Recording().Add({path}, 1).Build(), "order")), ElementsAre("main"));
}

TEST(OrderTest, ManagedCodeHasNone) {
  const ProfileModel model = Recording().Add({{kJit, "Shop.Main", "Shop.Program::Main", "Shop"}}, 1).Build();
  const auto text = Written(model, "order");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(HintOf(text.status()), HasSubstr(".callchain.json"));
}

const Function kShopMain{kR2r, "Shop.Program.Main", "Shop.Program::Main", "Shop", "/opt/Shop.dll", 0x2000, 100};
const Function kSort{kR2r,
                     "List<T>.Sort",
                     "System.Collections.Generic.List`1[System.__Canon]::Sort",
                     "System.Private.CoreLib",
                     "/opt/System.Private.CoreLib.dll",
                     0x5000,
                     10};
const Function kCompare{kJit, "Shop.Compare", "Shop.Order+ByTotal::Compare", "Shop"};
const Function kDotted{kJit, "Shop.I.Get", "Shop.Order::System.IComparable.CompareTo", "Shop"};
const Function kStub{kJit, "[stub x]", "", ""};

nlohmann::json Calls(const ProfileModel& model, WriterOptions options = {}) {
  const auto text = Written(model, "callchain", std::move(options));
  EXPECT_TRUE(text.ok()) << text.status();
  return nlohmann::json::parse(text.value_or("{}"));
}

int CallsOf(const nlohmann::json& calls, const std::string& caller, const std::string& callee) {
  if (!calls.contains(caller)) return 0;
  for (size_t i = 0; i < calls[caller][0].size(); ++i) {
    if (calls[caller][0][i] == callee) return calls[caller][1][i];
  }
  return 0;
}

constexpr char kMainName[] = "Shop.dll!Shop.Program.Main";
constexpr char kSortName[] = "System.Private.CoreLib.dll!System.Collections.Generic.List`1[System.__Canon].Sort";
constexpr char kCompareName[] = "Shop.dll!Shop.Order+ByTotal.Compare";

TEST(CallchainTest, CallsAndTheNextCallerOfTheSameAssembly) {
  const nlohmann::json calls = Calls(Recording()
                                         .Add({kMain, kShopMain, kStub, kSort, kCompare, kMalloc}, 1, 7)
                                         .Add({kMain, kShopMain, kSort}, 2, 2)
                                         .Build());
  EXPECT_EQ(CallsOf(calls, kMainName, kSortName), 9);
  EXPECT_EQ(CallsOf(calls, kSortName, kCompareName), 7);
  EXPECT_EQ(CallsOf(calls, kMainName, kCompareName), 7) << "crossgen2 sees only pairs that it compiles both of";
  EXPECT_EQ(CallsOf(calls, kCompareName, kCompareName), 7) << "samples in malloc are of who called it";
  EXPECT_EQ(CallsOf(calls, kMainName, kMainName), 1) << "else a method that only calls others would not be placed";
  EXPECT_EQ(calls.size(), 3u);
}

TEST(CallchainTest, NamesAsCrossgenSplitsThem) {
  const Function constructor{kR2r, "x", "Shop.Order::.ctor", "Shop"};
  const Function bang{kR2r, "x", "Shop.Order::Really!", "Shop"};
  std::string note;
  WriterOptions options;
  options.note = [&](absl::string_view text) { note = std::string(text); };
  const nlohmann::json calls = Calls(Recording().Add({bang, kDotted, constructor}, 1).Build(), options);
  EXPECT_EQ(CallsOf(calls, "Shop.Order!System.IComparable.CompareTo", "Shop.dll!Shop.Order..ctor"), 1);
  EXPECT_EQ(calls.size(), 2u);
  EXPECT_EQ(note, "2 managed methods; 1 frames without a name that crossgen2 knows were passed over");
}

TEST(CallchainTest, AModuleOnly) {
  const ProfileModel model = Recording().Add({kShopMain, kSort, kCompare}, 1, 7).Build();
  for (const char* module : {"Shop", "Shop.dll", "/opt/Shop.dll"}) {
    const nlohmann::json calls = Calls(model, {.module = module});
    EXPECT_EQ(CallsOf(calls, kMainName, kCompareName), 7);
    EXPECT_EQ(calls.size(), 2u);
  }
  EXPECT_EQ(Written(model, "callchain", {.module = "Other"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Written(NativeRecording(), "callchain").status().code(), absl::StatusCode::kNotFound);
}

TEST(CallchainTest, CountsFitIntoThirtyOneBits) {
  const nlohmann::json calls =
      Calls(Recording().Add({kShopMain, kSort}, 1, uint64_t{6} << 40).Add({kShopMain, kCompare}, 1, 3).Build());
  const int64_t most = CallsOf(calls, kMainName, kSortName);
  EXPECT_GT(most, int64_t{1} << 30);
  EXPECT_LT(most, int64_t{1} << 31);
  EXPECT_EQ(CallsOf(calls, kMainName, kCompareName), 1) << "what was seen stays";
}

// By docs/mip.md: a header of 32 bytes, the number of records, records of 52 bytes, names.
template <typename T>
T At(const std::string& bytes, size_t offset) {
  T value{};
  EXPECT_LE(offset + sizeof value, bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

TEST(MipTest, OneRecordForEachFunctionOfAnImage) {
  const std::string bytes = *Written(NativeRecording(), "mip");
  EXPECT_EQ(At<uint32_t>(bytes, 8), kMipCounts);
  EXPECT_EQ(At<uint32_t>(bytes, 12), MipModuleHash("app"));
  ASSERT_EQ(At<uint64_t>(bytes, 32), 3u);
  // In the order of their first samples.
  const struct {
    const char* name;
    uint32_t address, size;
    uint64_t count;
  } expected[] = {{"main", 0x1000, 32, 1}, {"rare", 0x1060, 16, 1}, {"_ZN4shop5TotalEv", 0x1020, 64, 5}};
  for (size_t i = 0; i < 3; ++i) {
    const size_t at = 40 + 52 * i;
    EXPECT_EQ(At<uint64_t>(bytes, at), MipFunctionSignature(expected[i].name)) << expected[i].name;
    EXPECT_EQ(At<uint32_t>(bytes, at + 8), 0x20 + 8 * i);
    EXPECT_EQ(At<uint32_t>(bytes, at + 12), expected[i].address);
    EXPECT_EQ(At<uint32_t>(bytes, at + 16), expected[i].size);
    EXPECT_EQ(At<uint32_t>(bytes, at + 28), 1u) << "one recording is one run";
    EXPECT_EQ(At<uint64_t>(bytes, at + 32), expected[i].count);
    EXPECT_EQ(At<uint64_t>(bytes, at + 40), i + 1) << "the rank of its first sample";
  }
}

TEST(MipTest, ManagedImagesAndCompiledCodeAreModules) {
  const ProfileModel model = Recording().Add({kShopMain, kSort, kCompare, kStub}, 1, 7).Build();
  EXPECT_EQ(At<uint32_t>(*Written(model, "mip", {.module = "Shop"}), 12), MipModuleHash("Shop.dll"));
  const std::string jit = *Written(model, "mip", {.module = "[jit]"});
  EXPECT_EQ(At<uint32_t>(jit, 12), MipModuleHash("[jit]"));
  EXPECT_EQ(At<uint64_t>(jit, 32), 1u);
  EXPECT_EQ(At<uint64_t>(jit, 40), MipFunctionSignature("Shop.Order+ByTotal::Compare"));
}

TEST(MipTest, AddressesBeyondTwoGigabytesTakeTheWideLayout) {
  const Function high{kNative, "start", "", "kernel.elf", "/boot/kernel.elf", 0xffffffff81000000, 16};
  const std::string bytes = *Written(Recording().Add({high}, 1).Build(), "mip");
  EXPECT_EQ(At<uint64_t>(bytes, 40 + 16), 0xffffffff81000000);
}

TEST(MipTest, TimesBecomeSamples) {
  Recording recording;
  recording.meta().unit = WeightUnit::kNanoseconds;
  const std::string bytes = *Written(recording.Add({kMain}, 1, 250'000'000).Build(), "mip");
  EXPECT_EQ(At<uint64_t>(bytes, 40 + 32), 25u);
}

TEST(ImageFunctionsTest, RecursionCountsOnce) {
  const std::vector<ProfileImage> images = ImagesOf(Recording().Add({kMain, kTotal, kMain, kTotal}, 1, 3).Build());
  ASSERT_EQ(images.size(), 1u);
  for (const ImageFunction& function : images[0].functions) EXPECT_EQ(function.total, 3u) << function.symbol;
  EXPECT_EQ(images[0].self, 3u);
}

TEST(ImageFunctionsTest, PrecompiledCodeThatAnotherSourceNamedIsOfTheSameImage) {
  const Function by_jitdump{kR2r, "Shop.Order.Total", "Shop.Order::Total", "Shop"};
  const ProfileModel model = Recording().Add({kShopMain, by_jitdump}, 1).Build();
  ASSERT_EQ(ImagesOf(model).size(), 1u);
  EXPECT_EQ(ImagesOf(model)[0].path, "/opt/Shop.dll");
  EXPECT_EQ(ImagesOf(model)[0].functions.size(), 2u);
}

TEST(ImageFunctionsTest, ImagesOfOneNameAreToldByTheirPaths) {
  const Function other{kNative, "malloc", "", "libc.so.6", "/container/libc.so.6"};
  EXPECT_EQ(ImageList(ImagesOf(Recording().Add({kMalloc}, 1, 3).Add({other}, 1).Add({kMain}, 1, 4, "x").Build())),
            "app (50.0 %), /lib/libc.so.6 (37.5 %), /container/libc.so.6 (12.5 %)");
}

TEST(ImageFunctionsTest, AnEmptyProfileHasNone) {
  EXPECT_THAT(ImagesOf(Recording().Build()), IsEmpty());
  for (const char* format : {"order", "callchain", "mip"}) {
    const auto text = Written(Recording().Build(), format);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound) << format;
    EXPECT_NE(HintOf(text.status()), "") << format;
  }
}

// Files in formats that keep what it needs give the same as the recording.
TEST(BuildToolsTest, JsonAndPprofKeepWhatOrdersNeed) {
  const ProfileModel model = NativeRecording();
  for (const char* format : {"json", "pprof"}) {
    const absl::StatusOr<ProfileModel> read = ReadProfile(*Written(model, format));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Lines(Written(*read, "order")), Lines(Written(model, "order"))) << format;
  }
  EXPECT_EQ(*Written(*ReadProfile(*Written(model, "json")), "mip"), *Written(model, "mip"));
}

TEST(BuildToolsTest, ExtensionsSayTheFormat) {
  EXPECT_EQ(WriterOfPath("app.order")->format, "order");
  EXPECT_EQ(WriterOfPath("shop.callchain.json")->format, "callchain");
  EXPECT_EQ(WriterOfPath("app.mip")->format, "mip");
  EXPECT_EQ(WriterOfPath("app.json")->format, "json");
}

// Each frame with another line in each sample.
ProfileModel WithLines(const ProfileModel& model) {
  ProfileModelBuilder builder;
  builder.meta() = model.meta;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    std::vector<FrameIndex> stack;
    for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
      ModelFrame frame = model.frame_of(node);
      for (StringIndex ModelFrame::*text : {&ModelFrame::name, &ModelFrame::system_name, &ModelFrame::source,
                                            &ModelFrame::module, &ModelFrame::module_path}) {
        frame.*text = builder.String(model.text(frame.*text));
      }
      frame.source_file = 0;
      frame.line = static_cast<uint32_t>(row + 1);
      stack.insert(stack.begin(), builder.Frame(frame));
    }
    ModelThread thread;
    thread.comm = builder.String(model.text(model.threads[model.samples.thread[row]].comm));
    ModelSample sample = model.samples.at(row);
    sample.thread = builder.Thread(thread);
    sample.stack = builder.Stack(stack);
    builder.Add(sample);
  }
  return *std::move(builder).Build();
}

TEST(BuildToolsTest, LinesOfAFunctionAreOneFunction) {
  const ProfileModel managed = Recording()
                                   .Add({{kJit, "Main", "Shop.Program::Main", "Shop"}}, 1, 2)
                                   .Add({{kJit, "Main", "Shop.Program::Main", "Shop"}, {kJit, "[stub]", "", "Shop"}}, 2)
                                   .Add({{kJit, "Main", "Shop.Program::Main", "Shop"}, {kJit, "[stub]", "", "Shop"}}, 3)
                                   .Build();
  const ProfileModel native = Recording()
                                  .Add({kMain, kTotal, {kNative, "app!0x1090", "", "app", "/opt/app", 0x1090}}, 1)
                                  .Add({kMain, kTotal, {kNative, "app!0x1090", "", "app", "/opt/app", 0x1090}}, 2)
                                  .Add({kMain, kTotal}, 3)
                                  .Build();
  for (const auto& [model, format] : {std::pair(&managed, "callchain"), std::pair(&native, "order")}) {
    std::string note, lined_note;
    WriterOptions options, lined_options;
    options.note = [&note](absl::string_view text) { note = std::string(text); };
    lined_options.note = [&lined_note](absl::string_view text) { lined_note = std::string(text); };
    const ProfileModel lined = WithLines(*model);
    ASSERT_GT(lined.frames.size(), model->frames.size());
    const absl::StatusOr<std::string> text = Written(*model, format, options);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(Written(lined, format, lined_options).value_or(""), *text);
    EXPECT_EQ(lined_note, note);
    EXPECT_THAT(note, HasSubstr("1 frames without a name"));
  }
}

}  // namespace
}  // namespace clrsampler
