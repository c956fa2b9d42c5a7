// A reader reads back what a writer writes: with the same weights, and with all that the format can hold.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/profile/gzip.h"
#include "formats/profile/profile_reader.h"
#include "output/profile_writer.h"
#include "unit/output/made_up_profile.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::TestWithParam;
using ::testing::Values;

std::string WrittenIn(const ProfileModel& model, absl::string_view format) {
  std::string bytes;
  const absl::Status written = WriterOfFormat(format)->make({})->Write(model, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  EXPECT_TRUE(written.ok()) << written;
  return bytes;
}

ProfileModel ReadBack(const ProfileModel& model, absl::string_view format) {
  absl::StatusOr<ProfileModel> read = ReadProfile(WrittenIn(model, format));
  EXPECT_TRUE(read.ok()) << read.status();
  return *std::move(read);
}

using FrameTextOf = std::function<std::string(const ProfileModel&, const ModelFrame&)>;
using ThreadTextOf = std::function<std::string(const ProfileModel&, const ModelThread&)>;

// Weights by the texts of the thread and of each frame.
std::map<std::string, uint64_t> Weights(const ProfileModel& model, const ThreadTextOf& thread,
                                        const FrameTextOf& frame) {
  std::map<std::string, uint64_t> weights;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    std::string path;
    for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
      path = absl::StrCat(";", frame(model, model.frame_of(node)), path);
    }
    const absl::string_view state = SampleStateText(model.samples.state_of(row));
    weights[absl::StrCat(thread(model, model.threads[model.samples.thread[row]]), "/", state, path)] +=
        model.samples.weight_of(row);
  }
  return weights;
}

std::string WholeThread(const ProfileModel& model, const ModelThread& thread) {
  return absl::StrCat(thread.pid, "/", thread.tid, "/", model.text(thread.comm), "/", model.text(thread.name), "/",
                      model.text(thread.container_id));
}
std::string WholeFrame(const ProfileModel& model, const ModelFrame& frame) {
  return absl::StrCat(ModelFrameKindText(frame.kind), "|", model.text(frame.name), "|", model.text(frame.system_name),
                      "|", model.text(frame.source), "|", model.text(frame.module), "|", model.text(frame.module_path),
                      "|", model.text(frame.build_id), "|", model.text(frame.file_hash), "|", model.text(frame.tier),
                      "|", model.text(frame.source_file), "|", frame.address, "|", frame.size, "|", frame.line, ":",
                      frame.column, " ", LineKindText(frame.line_kind));
}
// Without what pprof has no place for.
std::string PprofFrame(const ProfileModel& model, const ModelFrame& frame) {
  return absl::StrCat(ModelFrameKindText(frame.kind), "|", model.text(frame.name), "|", model.text(frame.system_name),
                      "|", model.text(frame.module), "|", model.text(frame.module_path), "|",
                      model.text(frame.build_id), "|", model.text(frame.source_file), "|", frame.line, ":",
                      frame.column);
}

// pprof takes mappings of one build for one mapping.
TEST(RoundTripTest, OnlyTheFileOfANativeAotProgramHasItsBuildInPprof) {
  ProfileModelBuilder builder;
  for (const auto& [kind, name, module] : {std::tuple{ModelFrameKind::kAot, "Main", "Shop"},
                                           {ModelFrameKind::kAot, "Write", "System.Console"},
                                           {ModelFrameKind::kNative, "memcpy", "shop"}}) {
    const FrameIndex frame = builder.Frame({.kind = kind,
                                            .name = builder.String(name),
                                            .module = builder.String(module),
                                            .module_path = builder.String("/app/shop"),
                                            .build_id = builder.String("c0ffee")});
    builder.Add({.thread = builder.Thread({.pid = 7}), .stack = builder.Node(kRootNode, frame)});
  }
  const ProfileModel read = ReadBack(*std::move(builder).Build(), "pprof");
  std::vector<std::string> builds;
  for (const ModelFrame& frame : read.frames) {
    builds.push_back(absl::StrCat(read.text(frame.name), " ", read.text(frame.build_id)));
  }
  EXPECT_THAT(builds, ::testing::UnorderedElementsAre("Main ", "Write ", "memcpy c0ffee"));
}

TEST(RoundTripTest, JsonLosesNothing) {
  ProfileModel model = test_support::MadeUpProfile();
  model.meta.view = ProfileView::kPause;
  model.meta.whole_host = true;
  const ProfileModel read = ReadBack(model, "json");
  EXPECT_EQ(Weights(read, WholeThread, WholeFrame), Weights(model, WholeThread, WholeFrame));
  EXPECT_EQ(read.total_weight, model.total_weight);
  EXPECT_EQ(read.samples.time_ns, model.samples.time_ns);
  EXPECT_EQ(read.samples.state, model.samples.state);
  EXPECT_EQ(read.nodes, model.nodes);
  EXPECT_EQ(read.meta.view, ProfileView::kPause);
  EXPECT_EQ(read.meta.unit, WeightUnit::kSamples);
  EXPECT_EQ(read.meta.period_ns, model.meta.period_ns);
  EXPECT_EQ(read.meta.start_unix_ns, model.meta.start_unix_ns);
  EXPECT_EQ(read.meta.start_monotonic_ns, model.meta.start_monotonic_ns);
  EXPECT_EQ(read.meta.duration_ns, model.meta.duration_ns);
  EXPECT_TRUE(read.meta.whole_host);
  EXPECT_EQ(read.meta.host, model.meta.host);
  EXPECT_EQ(read.meta.command, model.meta.command);
  EXPECT_EQ(read.meta.pids, model.meta.pids);
  EXPECT_EQ(read.meta.creator, model.meta.creator);
  EXPECT_EQ(read.meta.account_json, model.meta.account_json);
  // The same text again: nothing is renumbered on the way.
  EXPECT_EQ(WrittenIn(read, "json"), WrittenIn(model, "json"));
}

TEST(RoundTripTest, JsonKeepsWhatWasRecordedOfTheDuration) {
  ProfileModel model = test_support::MadeUpProfile();
  EXPECT_THAT(WrittenIn(model, "json"), ::testing::Not(HasSubstr("recorded_ns"))) << "all of it";
  model.meta.SetRecorded({{0, 10}, {20, 40}});
  const std::string written = WrittenIn(model, "json");
  const absl::StatusOr<ProfileModel> read = ReadProfile(written);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->meta.recorded, model.meta.recorded);
  EXPECT_EQ(read->meta.recorded_ns(), 30u);
  // A file of strangers: stretches that overlap, end before they begin, or lie behind the end.
  const std::string times = "\"recorded_ns\":[0,10,20,40]";
  ASSERT_TRUE(absl::StrContains(written, times)) << written.substr(0, 400);
  const auto with = [&](absl::string_view other) {
    return ReadProfile(absl::StrReplaceAll(written, {{times, absl::StrCat("\"recorded_ns\":", other)}}));
  };
  EXPECT_EQ(with("[5,30,0,10,40,7,18446744073709551615,18446744073709551615]")->meta.recorded_ns(), 30u);
  EXPECT_EQ(with("[]")->meta.recorded_ns(), model.meta.duration_ns);
  EXPECT_THAT(with("[0,10,20]").status().message(), HasSubstr("recorded_ns"));
}

TEST(RoundTripTest, JsonKeepsLinksToTracesAndLabelsOfProcesses) {
  ProfileModelBuilder builder;
  TraceLink link;
  link.SetTrace("0123456789abcdef0123456789abcdef");
  link.SetSpan("0011223344556677");
  const ThreadIndex thread = builder.Thread({.pid = 7, .tid = 8});
  builder.Add({.thread = thread});
  builder.Add({.thread = thread, .link = builder.Link(link)});
  builder.meta().labels[7].Set(LabelKey::kServiceName, "shop");
  builder.meta().labels[7].Set(LabelKey::kServiceVersion, "1.2 \"x\"");
  const ProfileModel model = *std::move(builder).Build();
  const std::string written = WrittenIn(model, "json");
  const ProfileModel read = ReadBack(model, "json");
  EXPECT_EQ(read.links, model.links);
  EXPECT_THAT(read.samples.link, ElementsAre(0, 1));
  EXPECT_EQ(read.meta.labels, model.meta.labels);
  EXPECT_EQ(WrittenIn(read, "json"), written);

  const auto with = [&](absl::string_view from, absl::string_view to) {
    EXPECT_TRUE(absl::StrContains(written, from)) << from;
    return ReadProfile(absl::StrReplaceAll(written, {{from, to}}));
  };
  EXPECT_THAT(with("\"link\": [0,1]", "\"link\": [0,2]").status().message(), HasSubstr("link 2"));
  EXPECT_THAT(with("\"span_id\": [\"\",", "\"span_id\": [").status().message(), HasSubstr("2 traces and 1 spans"));
  // Ids and labels of a stranger mean nothing where they are none.
  EXPECT_THAT(with("0011223344556677", "no id")->samples.link, IsEmpty());
  EXPECT_TRUE(with("service.name", "password")->meta.labels.at(7).service().empty());
  EXPECT_TRUE(with("{\"7\":", "{\"seven\":")->meta.labels.empty());
}

TEST(RoundTripTest, JsonKeepsLinesAndWhatIsKnownOfTheirFiles) {
  const ProfileModel model = test_support::MadeUpProfile({.lines = true});
  const ProfileModel read = ReadBack(model, "json");
  EXPECT_EQ(Weights(read, WholeThread, WholeFrame), Weights(model, WholeThread, WholeFrame));
  EXPECT_EQ(read.sources, model.sources);
  EXPECT_GT(model.sources.size(), 3u);
  EXPECT_EQ(WrittenIn(read, "json"), WrittenIn(model, "json"));
}

TEST(RoundTripTest, JsonKeepsEvents) {
  const ProfileModel model = test_support::MadeUpProfile({.events = 12});
  ASSERT_EQ(model.events.size(), 12u);
  const ProfileModel read = ReadBack(model, "json");
  EXPECT_EQ(read.events.size(), 12u);
  EXPECT_EQ(WrittenIn(read, "json"), WrittenIn(model, "json"));
}

TEST(RoundTripTest, EventsOutsideOfTheTablesAreAnErrorAndUnknownOnesAreLeftOut) {
  const std::string written = WrittenIn(test_support::MadeUpProfile({.events = 3}), "json");
  const auto with = [&](absl::string_view from, absl::string_view to) {
    EXPECT_TRUE(absl::StrContains(written, from)) << from;
    return ReadProfile(absl::StrReplaceAll(written, {{from, to}}));
  };
  EXPECT_THAT(with("\"kind\": [0,1,2]", "\"kind\": [0,1,3]").status().message(), HasSubstr("kind of events 3"));
  EXPECT_THAT(with("\"duration_ns\": [0,1000003,2000006]", "\"duration_ns\": [0]").status().message(),
              HasSubstr("events.duration_ns has 1"));
  const absl::StatusOr<ProfileModel> read = with("\"pause\",\"collection\"", "\"dream\",\"collection\"");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->events.size(), 2u);
}

TEST(RoundTripTest, JsonKeepsMachineCode) {
  ProfileModelBuilder builder;
  const StringIndex file = builder.String("Cart.cs");
  ModelCode first{.frame = builder.Frame({.name = builder.String("Total")}), .pid = 7, .address = 0x7f0000001000};
  first.time_ns = 12;
  first.bytes = std::string("\x90\0\xff", 3);
  first.lines = {{0, file, 3, 9}, {1, 0, 0, 0}};
  first.self = {{0, 5}, {2, 1}};
  ModelCode second{.frame = builder.Frame({.name = builder.String("Pay")}), .machine = CodeMachine::kArm64};
  second.bytes = "\xc0\x03\x5f\xd6";
  second.self = {{0, 2}};
  EXPECT_TRUE(builder.Code(first) && builder.Code(second));
  const ProfileModel model = *std::move(builder).Build();
  const ProfileModel read = ReadBack(model, "json");
  EXPECT_THAT(read.code, ElementsAre(first, second));
  EXPECT_EQ(WrittenIn(read, "json"), WrittenIn(model, "json"));
}

TEST(RoundTripTest, MachineCodeThatContradictsItselfIsAnError) {
  ProfileModelBuilder builder;
  ModelCode code{.frame = builder.Frame({.name = builder.String("Total")})};
  code.bytes = "\x90";
  code.lines = {{0, 0, 3, 9}};
  code.self = {{0, 5}};
  builder.Code(code);
  const std::string written = WrittenIn(*std::move(builder).Build(), "json");
  ASSERT_TRUE(ReadProfile(written).ok());
  const auto with = [&](absl::string_view from, absl::string_view to) {
    EXPECT_TRUE(absl::StrContains(written, from)) << from;
    return ReadProfile(absl::StrReplaceAll(written, {{from, to}})).status();
  };
  EXPECT_THAT(with("\"kA==\"", "\"?\"").message(), HasSubstr("base64"));
  EXPECT_THAT(with("\"lines\": [1]", "\"lines\": [2]").message(), HasSubstr("line of code 2"));
  EXPECT_THAT(with("\"self\": [1]", "\"self\": [2]").message(), HasSubstr("sample of code 2"));
  EXPECT_THAT(with("\"x86-64\"", "\"alpha\"").message(), HasSubstr("does not know"));
  EXPECT_THAT(with("\"machine\": [0]", "\"machine\": [9]").message(), HasSubstr("kind of machine 9"));
  EXPECT_THAT(with("\"code\": {\n  \"frame\": [0]", "\"code\": {\n  \"frame\": [3]").message(), HasSubstr("frame 3"));
  EXPECT_THAT(with("\"weight\": [5]", "\"weight\": [5, 5]").message(), HasSubstr("code_self.weight"));
  EXPECT_THAT(with("\"offset\": [0]", "\"offset\": [1]").message(), HasSubstr("not in order"));
}

TEST(RoundTripTest, NoFormatButJsonAndThePageHasASourceText) {
  ProfileModelBuilder builder;
  const FrameIndex frame =
      builder.Frame({.name = builder.String("Total"), .source_file = builder.String("Cart.cs"), .line = 1});
  builder.Source(builder.String("Cart.cs"), 0, "// a secret");
  builder.Add({.thread = builder.Thread({}), .stack = builder.Node(kRootNode, frame)});
  const ProfileModel model = *std::move(builder).Build();
  for (const WriterRow& row : WriterTable()) {
    if (row.for_build_tools || row.needs_code) continue;
    EXPECT_EQ(absl::StrContains(WrittenIn(model, row.format), "a secret"), row.format == "json") << row.format;
  }
}

TEST(RoundTripTest, TextsOfOthersThatAreTooLargeAreErrors) {
  ProfileModelBuilder builder;
  builder.Source(builder.String("Cart.cs"), 0, std::string(kMaxSourceTextBytes, 'a'));
  std::string written = WrittenIn(*std::move(builder).Build(), "json");
  EXPECT_EQ(ReadProfile(written)->sources.front().text.size(), kMaxSourceTextBytes);
  written.replace(written.find("aaaa"), 1, "aa");
  EXPECT_THAT(std::string(ReadProfile(written).status().message()), HasSubstr("sources.text"));
}

TEST(RoundTripTest, JsonKeepsWhichSamplesHaveNoTime) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({});
  builder.Add({.thread = thread});
  builder.Add({.time_ns = 0, .thread = thread, .weight = 3});
  builder.Add({.time_ns = 17, .thread = thread});
  const ProfileModel read = ReadBack(*std::move(builder).Build(), "json");
  EXPECT_THAT(read.samples.time_ns, ElementsAre(kNoTime, 0, 17));
  EXPECT_THAT(read.samples.weight, ElementsAre(1, 3, 1));
  EXPECT_THAT(read.samples.state, IsEmpty());
}

TEST(RoundTripTest, PprofKeepsAllButTimesSourcesAndTiers) {
  ProfileModel model = test_support::MadeUpProfile();
  model.meta.view = ProfileView::kPause;
  model.meta.whole_host = true;
  const ProfileModel read = ReadBack(model, "pprof");
  EXPECT_EQ(Weights(read, WholeThread, PprofFrame), Weights(model, WholeThread, PprofFrame));
  EXPECT_THAT(read.samples.time_ns, IsEmpty());
  EXPECT_EQ(read.meta.view, ProfileView::kPause);
  EXPECT_EQ(read.meta.unit, WeightUnit::kSamples);
  EXPECT_EQ(read.meta.period_ns, model.meta.period_ns);
  EXPECT_EQ(read.meta.start_unix_ns, model.meta.start_unix_ns);
  EXPECT_EQ(read.meta.duration_ns, model.meta.duration_ns);
  EXPECT_TRUE(read.meta.whole_host);
  EXPECT_EQ(read.meta.host, model.meta.host);
  EXPECT_EQ(read.meta.command, model.meta.command);
  EXPECT_EQ(read.meta.creator, model.meta.creator);
}

// Rates are by the time that was recorded, and the format has no gaps.
TEST(RoundTripTest, PprofOfNobodyKeepsWhereItIsFrom) {
  ProfileModel model = test_support::MadeUpProfile();
  model.meta.creator.clear();
  model.meta.host = "build-7";
  model.meta.whole_host = true;
  const ProfileModel back = ReadBack(model, "pprof");
  EXPECT_EQ(back.meta.creator, "");
  EXPECT_EQ(back.meta.host, "build-7");
  EXPECT_TRUE(back.meta.whole_host);
}

TEST(RoundTripTest, TheDurationInPprofIsWithoutGaps) {
  ProfileModel model = test_support::MadeUpProfile();
  model.meta.duration_ns = 3'630'000'000'000;
  model.meta.SetRecorded({{0, 30'000'000'000}, {3'600'000'000'000, 3'630'000'000'000}});
  EXPECT_EQ(ReadBack(model, "pprof").meta.recorded_ns(), model.meta.recorded_ns());
  EXPECT_EQ(ReadBack(model, "json").meta.recorded_ns(), model.meta.recorded_ns());
}

TEST(RoundTripTest, PprofKeepsLinesAndHasOneFunctionForAMethod) {
  const ProfileModel model = test_support::MadeUpProfile({.lines = true});
  const ProfileModel read = ReadBack(model, "pprof");
  EXPECT_EQ(Weights(read, WholeThread, PprofFrame), Weights(model, WholeThread, PprofFrame));
  EXPECT_TRUE(HasLines(read));
}

TEST(RoundTripTest, SpeedscopeKeepsLinesAndTheirFiles) {
  const ProfileModel model = test_support::MadeUpProfile({.times = false, .lines = true});
  const auto place = [](const ProfileModel& m, const ModelFrame& frame) {
    const absl::string_view file = frame.line == 0 ? "" : m.text(frame.source_file);
    return absl::StrCat(m.text(frame.name), "|", file, ":", frame.line, ":", frame.column);
  };
  EXPECT_EQ(Weights(ReadBack(model, "speedscope"), ProcessLabel, place), Weights(model, ProcessLabel, place));
}

TEST(RoundTripTest, FoldedTextWithLinesIsTheSameAgainAndFromEachFormat) {
  const ProfileModel model = test_support::MadeUpProfile({.lines = true});
  const std::string folded = WrittenIn(model, "folded");
  EXPECT_THAT(folded, HasSubstr("Method3+<lambda_0>:4_[j]"));
  EXPECT_THAT(folded, HasSubstr("Method3+<lambda_0>:12_[j]"));
  EXPECT_EQ(WrittenIn(ReadBack(model, "folded"), "folded"), folded);
  EXPECT_EQ(WrittenIn(ReadBack(model, "json"), "folded"), folded);
  EXPECT_EQ(WrittenIn(ReadBack(model, "pprof"), "folded"), folded);
  EXPECT_TRUE(HasLines(ReadBack(model, "folded")));
}

TEST(RoundTripTest, SpeedscopeKeepsProcessesAndNames) {
  ProfileModel model = test_support::MadeUpProfile({.times = false});
  model.meta.whole_host = true;
  const auto name = [](const ProfileModel& m, const ModelFrame& frame) { return std::string(m.text(frame.name)); };
  EXPECT_EQ(Weights(ReadBack(model, "speedscope"), ProcessLabel, name), Weights(model, ProcessLabel, name));
}

TEST(RoundTripTest, FoldedTextIsTheSameAgainAndFromEachFormat) {
  ProfileModel model = test_support::MadeUpProfile();
  const std::string folded = WrittenIn(model, "folded");
  EXPECT_EQ(WrittenIn(ReadBack(model, "folded"), "folded"), folded);
  EXPECT_EQ(WrittenIn(ReadBack(model, "json"), "folded"), folded);
  EXPECT_EQ(WrittenIn(ReadBack(model, "pprof"), "folded"), folded);
  model.meta.whole_host = true;
  const std::string with_pids = WrittenIn(model, "folded");
  EXPECT_THAT(with_pids, HasSubstr("web0-4711;"));
  EXPECT_EQ(WrittenIn(ReadBack(model, "folded"), "folded"), with_pids);
  EXPECT_EQ(WrittenIn(ReadBack(model, "json"), "folded"), with_pids);
  EXPECT_EQ(WrittenIn(ReadBack(model, "pprof"), "folded"), with_pids);
}

TEST(RoundTripTest, DelaysKeepTheirUnit) {
  for (const WeightUnit unit : {WeightUnit::kMicroseconds, WeightUnit::kNanoseconds}) {
    ProfileModel model = test_support::MadeUpProfile();
    model.meta.view = ProfileView::kSuspendDelay;
    model.meta.unit = unit;
    for (const char* format : {"json", "pprof", "speedscope"}) {
      const ProfileModel read = ReadBack(model, format);
      EXPECT_EQ(read.meta.unit, unit) << format;
      EXPECT_EQ(read.total_weight, model.total_weight) << format;
    }
    EXPECT_EQ(ReadBack(model, "pprof").meta.view, ProfileView::kSuspendDelay);
  }
}

// The pprof type alone says it, for files that other programs have written anew without our comments.
TEST(RoundTripTest, EventsKeepTheirViewAndUnit) {
  const struct {
    ProfileView view;
    WeightUnit unit;
    const char* type;
  } kCases[] = {{ProfileView::kExceptions, WeightUnit::kSamples, "exceptions"},
                {ProfileView::kContention, WeightUnit::kNanoseconds, "contention"},
                {ProfileView::kAllocations, WeightUnit::kBytes, "alloc_space"}};
  for (const auto& [view, unit, type] : kCases) {
    ProfileModel model = test_support::MadeUpProfile();
    model.meta.view = view;
    model.meta.unit = unit;
    model.meta.period_ns = 0;
    for (const char* format : {"json", "pprof"}) {
      const ProfileModel read = ReadBack(model, format);
      EXPECT_EQ(read.meta.view, view) << format;
      EXPECT_EQ(read.meta.unit, unit) << format;
      EXPECT_EQ(read.total_weight, model.total_weight) << format;
    }
    const std::string pprof = *Gunzip(WrittenIn(model, "pprof"), 1 << 20);
    EXPECT_THAT(pprof, HasSubstr(type));
    std::string uncommented = pprof;
    const size_t comment = uncommented.find("view: ");
    ASSERT_NE(comment, std::string::npos);
    uncommented[comment] = 'x';
    EXPECT_EQ(ReadProfile(uncommented)->meta.view, view);
  }
}

class EveryFormatTest : public TestWithParam<std::string> {};

TEST_P(EveryFormatTest, KeepsTheTotal) {
  const ProfileModel model = test_support::MadeUpProfile({.samples = 5000});
  EXPECT_EQ(ReadBack(model, GetParam()).total_weight, 5000u);
}

TEST_P(EveryFormatTest, KeepsAProfileWithoutSamples) {
  ProfileModelBuilder builder;
  EXPECT_EQ(ReadBack(*std::move(builder).Build(), GetParam()).total_weight, 0u);
}

TEST_P(EveryFormatTest, KeepsWeightsThatFloatingPointDoesNot) {
  // Speedscope's own numbers are those of JavaScript.
  const uint64_t weight = GetParam() == "speedscope" ? (uint64_t{1} << 53) - 1 : kMaxTotalWeight - 1;
  ProfileModelBuilder builder;
  builder.Add({.thread = builder.Thread({}), .weight = weight});
  EXPECT_EQ(ReadBack(*std::move(builder).Build(), GetParam()).total_weight, weight);
}

TEST_P(EveryFormatTest, KeepsNamesOfAnyBytesApart) {
  const char* const names[] = {"a\"b\\c", "<script>alert(1)</script>", "caf\xc3\xa9", "a\nb 7", "\x01\x02", "x;y",
                               "\xff\xfe"};
  ProfileModelBuilder builder;
  ModelThread thread;
  thread.comm = builder.String("we\"b");
  for (const char* name : names) {
    ModelFrame frame;
    frame.name = builder.String(name);
    builder.Add({.thread = builder.Thread(thread), .stack = builder.Node(kRootNode, builder.Frame(frame))});
  }
  const ProfileModel read = ReadBack(*std::move(builder).Build(), GetParam());
  EXPECT_EQ(read.total_weight, std::size(names));
  EXPECT_EQ(read.nodes.size(), 1 + std::size(names));
}

TEST_P(EveryFormatTest, EndsWithTheErrorOfTheSink) {
  const ProfileModel model = test_support::MadeUpProfile({.samples = 200'000, .stacks = 20'000});
  int calls = 0;
  const absl::Status written = WriterOfFormat(GetParam())->make({})->Write(model, [&](absl::string_view) {
    return ++calls > 1 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  EXPECT_EQ(written.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(calls, 2);
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormatTest, Values("folded", "json", "pprof", "speedscope"),
                         [](const auto& param_info) { return param_info.param; });

TEST(RoundTripTest, PprofRefusesTimesThatItCannotHold) {
  ProfileModelBuilder builder;
  builder.meta().period_ns = 1'000'000'000;
  builder.Add({.thread = builder.Thread({}), .weight = kMaxTotalWeight / 1000});
  const ProfileModel model = *std::move(builder).Build();
  const absl::Status written =
      WriterOfFormat("pprof")->make({})->Write(model, [](absl::string_view) { return absl::OkStatus(); });
  EXPECT_EQ(written.code(), absl::StatusCode::kOutOfRange);
}

TEST(WriterTableTest, TheLongestExtensionSaysTheFormat) {
  EXPECT_EQ(WriterOfPath("cpu.json")->format, "json");
  EXPECT_EQ(WriterOfPath("cpu.speedscope.json")->format, "speedscope");
  EXPECT_EQ(WriterOfPath("/tmp/a.b/cpu.PB.GZ")->format, "pprof");
  EXPECT_EQ(WriterOfPath("cpu.collapsed")->format, "folded");
  EXPECT_EQ(WriterOfPath("cpu"), nullptr);
  EXPECT_EQ(WriterOfPath("json"), nullptr);
}

}  // namespace
}  // namespace clrsampler
