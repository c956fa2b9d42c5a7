#include "output/report_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "output/diff_text.h"
#include "output/hot_paths.h"
#include "output/own_methods.h"
#include "output/report_methods.h"
#include "output/report_text.h"
#include "profile/model_diff.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Builds a profile of one thread out of stacks of names: "Shop.A;System.B;[monitor]".
class Made {
 public:
  explicit Made(ProfileView view = ProfileView::kCpu, WeightUnit unit = WeightUnit::kSamples) {
    builder_.meta().view = view;
    builder_.meta().unit = unit;
    builder_.meta().period_ns = 10'000'000;
    builder_.meta().duration_ns = 10'000'000'000;
  }
  Made& Add(uint64_t weight, const std::vector<std::string>& stack, uint32_t tid = 8) {
    std::vector<FrameIndex> frames;
    for (const std::string& name : stack) frames.push_back(builder_.Frame(FrameOf(name)));
    const ThreadIndex thread = builder_.Thread({.pid = 7, .tid = tid, .comm = builder_.String("shop")});
    // Adds so many rows of samples, and one of other weights.
    const uint64_t rows = builder_.meta().unit == WeightUnit::kSamples ? weight : 1;
    for (uint64_t i = 0; i < rows; ++i) {
      builder_.Add(
          {.time_ns = ++at_, .thread = thread, .stack = builder_.Stack(frames), .weight = rows == 1 ? weight : 1});
    }
    return *this;
  }
  Made& Account(const std::string& json) {
    builder_.meta().account_json = json;
    return *this;
  }
  Made& Event(ModelEventKind kind, uint64_t milliseconds, const std::string& name, const std::string& detail = "") {
    builder_.Event({.time_ns = ++at_,
                    .duration_ns = milliseconds * 1'000'000,
                    .kind = kind,
                    .name = builder_.String(name),
                    .detail = builder_.String(detail)});
    return *this;
  }
  ProfileModel Build() { return *std::move(builder_).Build(); }

 private:
  ModelFrame FrameOf(std::string name) {
    ModelFrame frame{.kind = ModelFrameKind::kJit};
    if (name.starts_with("[gc") || name.starts_with("[jit")) {
      frame.kind = ModelFrameKind::kRole;
    } else if (name.starts_with("[")) {
      frame.kind = ModelFrameKind::kMark;
    } else if (name.starts_with("type ")) {
      frame.kind = ModelFrameKind::kType;
      name = name.substr(5);
    } else if (name.starts_with("lib")) {
      frame.kind = ModelFrameKind::kNative;
    }
    if (const size_t line = name.find(':'); line != std::string::npos) {
      frame.source_file = builder_.String("/src/Shop.cs");
      frame.line = static_cast<uint32_t>(std::stoul(name.substr(line + 1)));
      name = name.substr(0, line);
    }
    frame.name = builder_.String(name);
    return frame;
  }
  ProfileModelBuilder builder_;
  uint64_t at_ = 0;
};

std::string MarkdownOf(const std::vector<ProfileModel>& models, const RuntimeTables* runtime = nullptr) {
  std::vector<ReportSource> sources;
  for (const ProfileModel& model : models) sources.push_back({"shop.json", &model});
  absl::StatusOr<Report> report = BuildReport(sources, runtime);
  return report.ok() ? ReportMarkdown(*std::move(report), 100'000) : report.status().ToString();
}

TEST(ReportBuilderTest, AComparisonSaysThatItDoesNotKnowTheScatter) {
  constexpr char kUnknown[] = "The scatter of the program is not known";
  const ProfileModel whole = Made().Add(400, {"Shop.A"}).Add(400, {"Shop.B"}).Build();
  EXPECT_THAT(MarkdownOf({whole, whole}), Not(HasSubstr(kUnknown)));
  ProfileModel partly = whole;
  partly.samples.time_ns.back() = kNoTime;
  EXPECT_THAT(MarkdownOf({partly, partly}), HasSubstr(kUnknown));
  const absl::StatusOr<ProfileDiff> diff = DiffProfiles(partly, partly, DiffBasis::kShare);
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_THAT(DiffText(*diff, 5), HasSubstr("scatter of the program is not known"));
}

TEST(ReportBuilderTest, RatesAreOfTheTimeThatWasRecorded) {
  Made made;
  made.Add(200, {"Shop.A"}).Event(ModelEventKind::kPause, 100, "gc");
  ProfileModel model = made.Build();
  EXPECT_THAT(MarkdownOf({model}), HasSubstr("2.00 s of CPU time in 10.0 s: 0.20 CPUs were busy"));
  model.meta.SetRecorded({{0, 1'000'000'000}, {7'000'000'000, 8'000'000'000}});
  EXPECT_THAT(MarkdownOf({model}), HasSubstr("2.00 s of CPU time in 2.0 s: 1.00 CPUs were busy"));
}

TEST(OwnMethodsTest, LibrariesCountForWhoCalledThem) {
  const ProfileModel model = Made()
                                 .Add(6, {"Shop.Main", "Shop.Check", "System.Regex.IsMatch", "System.Regex.Go"})
                                 .Add(3, {"Shop.Main", "Shop.Check"})
                                 .Add(1, {"Shop.Main", "[jit Shop.Check Tier0]", "libclrjit"})
                                 .Add(9, {"System.Threading.Start"})
                                 .Build();
  const std::vector<OwnWeight> methods = OwnMethods(model);
  ASSERT_EQ(methods.size(), 2);
  EXPECT_EQ(methods[0].name, "Shop.Check");
  EXPECT_EQ(methods[0].weight, 9);
  EXPECT_EQ(methods[0].mostly, "System.Regex.IsMatch");
  EXPECT_EQ(methods[1].name, "Shop.Main");
  EXPECT_EQ(methods[1].mostly, "[jit]");
}

// Folded text says of managed code alone what it is; a helper of the runtime is no method of the program.
TEST(OwnMethodsTest, FramesWithoutAKindAreOwnOnlyWhereNoneHasAKind) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({});
  const FrameIndex main = builder.Frame({.kind = ModelFrameKind::kJit, .name = builder.String("Shop.Main")});
  const FrameIndex unknown = builder.Frame({.name = builder.String("JIT_CountProfile32")});
  builder.Add({.thread = thread, .stack = builder.Stack(std::vector<FrameIndex>{main, unknown})});
  ASSERT_EQ(OwnMethods(builder.model()).size(), 1);
  EXPECT_EQ(OwnMethods(builder.model())[0].name, "Shop.Main");

  ProfileModelBuilder foreign;
  const FrameIndex total = foreign.Frame({.name = foreign.String("shop_total")});
  foreign.Add({.thread = foreign.Thread({}), .stack = foreign.Stack(std::vector<FrameIndex>{total})});
  ASSERT_EQ(OwnMethods(foreign.model()).size(), 1);
  EXPECT_EQ(OwnMethods(foreign.model())[0].name, "shop_total");
}

TEST(HotPathsTest, PathsDivideWhereNoCalleeHasHalf) {
  const ProfileModel model =
      Made().Add(45, {"Main", "Run", "A", "Deep"}).Add(40, {"Main", "Run", "B"}).Add(15, {"Main", "Run", "C"}).Build();
  const std::vector<HotPath> paths = HotPaths(model);
  ASSERT_EQ(paths.size(), 3);
  EXPECT_THAT(paths[0].frames, ElementsAre("Main", "Run", "A", "Deep"));
  EXPECT_EQ(paths[0].weight, 45);
  EXPECT_THAT(paths[2].frames, ElementsAre("Main", "Run", "C"));
}

TEST(HotPathsTest, APathWithLessThanHalfIsNotForgottenBesideALargerOne) {
  const ProfileModel model = Made().Add(60, {"Main", "A"}).Add(40, {"Main", "B"}).Build();
  const std::vector<HotPath> paths = HotPaths(model);
  ASSERT_EQ(paths.size(), 2);
  EXPECT_THAT(paths[1].frames, ElementsAre("Main", "B"));
  EXPECT_EQ(paths[1].weight, 40);
}

TEST(ReportBuilderTest, CpuTimeHasItsMethodsWithErrors) {
  const std::string text = MarkdownOf({Made()
                                           .Add(75, {"Shop.Main", "Shop.Check", "System.Regex.Go"})
                                           .Add(25, {"Shop.Main", "[gc gen0 blocking]", "libcoreclr"})
                                           .Build()});
  EXPECT_THAT(text, HasSubstr("1.00 s of CPU time in 10.0 s: 0.10 CPUs were busy."));
  EXPECT_THAT(text, HasSubstr("|75 % ± 4|`Shop.Check`|`System.Regex.Go`|\n"));
  EXPECT_THAT(text, HasSubstr("|75 % ± 4|75 % ± 4|`System.Regex.Go`|\n"));
  EXPECT_THAT(text, HasSubstr("|25 % ± 4|collecting garbage (GC)|\n"));
  EXPECT_THAT(text, HasSubstr("|75 % ± 4|`Shop.Main → Shop.Check → System.Regex.Go`|\n"));
}

TEST(ReportBuilderTest, CoverageComesFirstAndSaysWhatIsMissing) {
  const ProfileModel model =
      Made()
          .Add(10, {"Shop.Main"})
          .Account(R"({"samples":{"lost":{"ring_full":3}},"frames":{"managed":{"named":90,"unnamed":10},
                      "unnamed_reasons":{"[jit: no map]":10}},"notices":[{"kind":"x","message":"no symbols"}]})")
          .Build();
  const std::string text = MarkdownOf({model});
  EXPECT_LT(text.find("## Coverage"), text.find("## CPU time"));
  EXPECT_THAT(text, HasSubstr("|shop.json|cpu|10 samples|10.0 s|3|90.0 %|shop 7|\n"));
  EXPECT_THAT(text, HasSubstr("shop.json: 3 lost: ring_full."));
  EXPECT_THAT(text, HasSubstr("frames without a name: `[jit: no map]` 10."));
  EXPECT_THAT(text, HasSubstr("no symbols."));
}

TEST(ReportBuilderTest, AnAccountOfAnyFormIsUnknownAndNoCrash) {
  for (const char* account : {"", "[]", "7", "{\"samples\":7,\"frames\":[],\"notices\":{\"a\":1}}",
                              R"({"samples":{"lost":"x"},"frames":{"managed":3,"unnamed_reasons":[1]},"waits":[2]})"}) {
    EXPECT_THAT(MarkdownOf({Made().Add(1, {"Shop.Main"}).Account(account).Build()}), HasSubstr("## CPU time"));
    EXPECT_THAT(
        MarkdownOf({Made(ProfileView::kWall, WeightUnit::kMicroseconds).Add(1, {"A"}).Account(account).Build()}),
        HasSubstr("## Waits"));
  }
}

TEST(ReportBuilderTest, WallTimeIsWaitsLocksPoolAndWhatRan) {
  Made made(ProfileView::kWall, WeightUnit::kMicroseconds);
  made.Add(20'000'000, {"Shop.Main", "Shop.Reserve", "System.Threading.Monitor.Enter", "[monitor]",
                        "[woken by thread seller]", "System.Threading.Monitor.Exit", "Shop.Ship"});
  made.Add(5'000'000, {"Shop.Main", "Shop.Load", "[socket]"});
  made.Add(1'000'000, {"Shop.Main", "Shop.Compute"});
  const std::string text = MarkdownOf({made.Build()});
  EXPECT_THAT(text, HasSubstr("|20.00 s|2.0|monitor|`Shop.Reserve`|`thread seller in Shop.Ship`|\n"));
  EXPECT_THAT(text, HasSubstr("|5.00 s|0.5|socket|`Shop.Load`|unknown|\n"));
  EXPECT_THAT(text, HasSubstr("`Shop.Compute`|its own code|\n"));
  EXPECT_THAT(text, Not(HasSubstr("`Shop.Reserve`|its own code")));
  EXPECT_THAT(text, HasSubstr("No worker of the thread pool did anything in 10.0 s."));
}

TEST(ReportBuilderTest, AProfileWithoutEventsSaysWhichCommandKeepsThem) {
  const char kSays[] = "`clrsampler record --pid PID -o cpu.json`";
  std::vector<ProfileModel> models;
  models.push_back(Made().Add(1, {"Shop.Main"}).Build());
  models.push_back(Made(ProfileView::kExceptions).Add(1, {"Shop.Main", "type System.FormatException"}).Build());
  EXPECT_THAT(MarkdownOf(models), HasSubstr(kSays));
  models[1].events.push_back({.duration_ns = 1'000'000, .kind = ModelEventKind::kPause});
  EXPECT_THAT(MarkdownOf(models), Not(HasSubstr(kSays)));
  EXPECT_THAT(MarkdownOf(models), HasSubstr("1 pause took 1.00 ms of 10.0 s (0.0 %)."));
  models[1].events.clear();
  models.push_back(Made(ProfileView::kSuspendDelay, WeightUnit::kMicroseconds).Add(5, {"Shop.Main"}).Build());
  EXPECT_THAT(MarkdownOf(models), Not(HasSubstr(kSays)));
}

TEST(ReportBuilderTest, AllocationsAndExceptionsHaveTypesAndPlaces) {
  Made allocations(ProfileView::kAllocations, WeightUnit::kBytes);
  for (int i = 0; i < 30; ++i) allocations.Add(100'000'000, {"Shop.Export", "System.List.Add", "type Shop.Line"});
  Made exceptions(ProfileView::kExceptions);
  exceptions.Add(500, {"Shop.Main", "Shop.Parse", "type System.FormatException"});
  const std::string text = MarkdownOf({allocations.Build(), exceptions.Build()});
  EXPECT_THAT(text, HasSubstr("3000.0 MB were allocated, 300.0 MB/s."));
  EXPECT_THAT(text, HasSubstr("|300.0|100 % ± 3|`Shop.Export`|`Shop.Line`|\n"));
  EXPECT_THAT(text, HasSubstr("500 exceptions were thrown, 50.0 a second."));
  EXPECT_THAT(text, HasSubstr("|`System.FormatException`|`Shop.Parse ← Shop.Main`|\n"));
}

TEST(ReportBuilderTest, AllocationsThatProbesDidNotSeeAreSaid) {
  const auto text_of = [](const char* account) {
    Made made(ProfileView::kAllocations, WeightUnit::kBytes);
    return MarkdownOf({made.Add(1000, {"Shop.Export", "type Shop.Line"}).Account(account).Build()});
  };
  EXPECT_THAT(text_of(R"({"allocations":{"bytes":210,"counted_bytes":790,"estimated_bytes":1000}})"),
              HasSubstr("Probes saw 21 % of that, and the runtime counted 79 %."));
  EXPECT_THAT(text_of(R"({"allocations":{"bytes":210,"counted_bytes":600,"estimated_bytes":1000}})"),
              HasSubstr("Probes saw 21 % of that, and the runtime counted 60 %; the rest is estimated by CPU time."));
  EXPECT_THAT(text_of(R"({"allocations":{"bytes":1000,"estimated_bytes":1000}})"), Not(HasSubstr("Probes saw")));
}

TEST(ReportBuilderTest, TwoOfAViewAreCompared) {
  const auto profile = [](uint64_t slow) {
    Made made;
    // Spread over the time of the recording: phases would be noise.
    for (uint64_t i = 0; i < 1000; ++i) made.Add(1, {"Shop.Main", i * 619 % 1000 < slow ? "Shop.Slow" : "Shop.Fast"});
    return made.Build();
  };
  std::vector<ProfileModel> models;
  models.push_back(profile(100));
  models.push_back(profile(400));
  const std::string text = MarkdownOf(models);
  EXPECT_THAT(text, HasSubstr("changed by more than noise"));
  EXPECT_THAT(text, testing::ContainsRegex("\\|\\+30.0 % ± [0-9.]+\\|self\\|10.0 %\\|40.0 %\\|`Shop.Slow`\\|"));
  models.push_back(profile(100));
  EXPECT_THAT(MarkdownOf(models), HasSubstr("3 profiles of the view cpu were given"));
}

TEST(ReportBuilderTest, ALargeChangeOfACallerIsNotBehindManySmallOnes) {
  const auto profile = [](bool after) {
    Made made;
    for (uint64_t i = 0; i < 4000; ++i) {
      // Forty methods of the libraries share what the program's method lost or won.
      const std::string leaf = absl::StrCat("System.Leaf", i * 619 % 40);
      made.Add(1, after ? std::vector<std::string>{"Main", "Shop.Answer", leaf} : std::vector<std::string>{"Main"});
    }
    return made.Build();
  };
  const absl::StatusOr<ReportTable> changes = ChangesTable(profile(false), profile(true));
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(changes->rows[0].cells[4].text, "Main");
  EXPECT_EQ(changes->rows[1].cells[4].text, "Shop.Answer");
  EXPECT_EQ(changes->rows[1].cells[1].text, "with callees");
  EXPECT_EQ(changes->rows.size() + changes->more_rows, 42);
}

TEST(ReportBuilderTest, PausesAndCompilationsOfARecording) {
  RuntimeTables runtime;
  Pause pause;
  pause.stopped = {4'000'000};
  pause.resume_begun = {10'000'000};
  pause.generation = 1;
  pause.kind = PauseKind::kBlockingGc;
  pause.reason = 1;
  const std::vector<Culprit> culprits = {{"Shop.Rebuild", 9, 3'000'000, 3}};
  for (int i = 0; i < 3; ++i) runtime.Add(pause, culprits);
  NamedCompilation compilation;
  compilation.compilation.done = {2'000'000};
  compilation.method = "DynamicClass.lambda";
  compilation.tier = "Optimized";
  compilation.callers = {"System.Linq.Compile", "Shop.Apply"};
  runtime.Add(compilation);
  absl::StatusOr<RuntimeTables> read = RuntimeTables::FromJson(runtime.ToJson());
  ASSERT_TRUE(read.ok());
  std::vector<ProfileModel> models;
  models.push_back(Made().Add(10, {"Shop.Main"}).Build());
  const std::string text = MarkdownOf(models, &*read);
  EXPECT_THAT(text, HasSubstr("3 pauses took 30.0 ms of 10.0 s (0.3 %), of which 12.0 ms to stop the threads."));
  EXPECT_THAT(text, HasSubstr("|9.00 ms|3|3.00 ms|`Shop.Rebuild`|\n"));
  EXPECT_THAT(text, HasSubstr("|2.00 ms|1|2.00 ms|`Shop.Apply`|\n"));
}

TEST(ReportBuilderTest, AProfileTellsOfThePausesAndCompilationsThatItKept) {
  Made made;
  made.Add(10, {"Shop.Main"})
      .Event(ModelEventKind::kPause, 20, "blocking gen2")
      .Event(ModelEventKind::kPause, 10, "blocking gen2")
      .Event(ModelEventKind::kCollection, 0, "blocking gen2")
      .Event(ModelEventKind::kCompilation, 5, "Shop.Cart.Sum", "Optimized");
  std::vector<ProfileModel> models;
  models.push_back(made.Build());
  const std::string text = MarkdownOf(models);
  EXPECT_THAT(text, HasSubstr("2 pauses took 30.0 ms of 10.0 s (0.3 %).\n"));
  EXPECT_THAT(text, HasSubstr("|30.0 ms|2|20.0 ms|blocking gen2|\n"));
  EXPECT_THAT(text, HasSubstr("|5.00 ms|1|5.00 ms|`Shop.Cart.Sum`|\n"));
  EXPECT_THAT(text, Not(HasSubstr("Methods that delayed the pauses")));
}

TEST(ReportBuilderTest, WaitsThatAreCountedAndNotTimedAreRefused) {
  EXPECT_THAT(MarkdownOf({Made(ProfileView::kWall, WeightUnit::kSamples).Add(1, {"A"}).Build()}),
              HasSubstr("a profile of waits counts in samples, which is no time"));
}

TEST(RuntimeTablesTest, OtherTextIsNoTable) {
  for (const char* text :
       {"", "{}", "[]", R"({"pauses":[["a",1,2,3]],"culprits":[],"tiers":[],"callers":[],"methods":[]})",
        R"({"pauses":[["a",1,2,3,-4]],"culprits":[],"tiers":[],"callers":[],"methods":[]})"}) {
    EXPECT_FALSE(RuntimeTables::FromJson(text).ok()) << text;
  }
}

TEST(ReportMethodsTest, CallersOfARecursionAreThoseOfItsOutermostCall) {
  const ProfileModel model = Made().Add(3, {"A", "Walk", "Walk", "Leaf"}).Add(1, {"B", "Walk"}).Add(4, {"C"}).Build();
  const ReportTable table = CallersTable(model, "Walk");
  ASSERT_EQ(table.rows.size(), 2);
  EXPECT_EQ(table.rows[0].cells[2].text, "A");
  EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0].cells[0].value), 0.75);
  EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0].cells[1].value), 0.375);
}

TEST(ReportMethodsTest, LinesHaveSelfAndTotal) {
  const ProfileModel model = Made().Add(3, {"Sum:7", "Leaf"}).Add(1, {"Sum:7"}).Add(4, {"Sum:9"}).Build();
  const ReportTable table = LinesTable(model, "Sum");
  ASSERT_EQ(table.rows.size(), 2);
  EXPECT_EQ(table.rows[0].cells[2].text, "/src/Shop.cs:7");
  EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0].cells[0].value), 0.125);
  EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0].cells[1].value), 0.5);
}

TEST(ReportMethodsTest, AMethodIsFoundByAPartThatNoOtherHas) {
  const ProfileModel model = Made().Add(1, {"Shop.Order.Total", "Shop.Cart.Total", "Shop.Cart.Sum"}).Build();
  EXPECT_EQ(*MethodNamed(model, "Shop.Cart.Sum"), "Shop.Cart.Sum");
  EXPECT_EQ(*MethodNamed(model, "Cart.Total"), "Shop.Cart.Total");
  EXPECT_EQ(*MethodNamed(model, "Order"), "Shop.Order.Total");
  EXPECT_EQ(MethodNamed(model, "Total").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MethodNamed(model, "Nothing").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace clrsampler
