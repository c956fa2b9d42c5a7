#include "export/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "os/clock.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kNow = 1'790'000'000 * kSecondNs;

RequestTarget Parsed(absl::string_view text) {
  const absl::StatusOr<RequestTarget> target = ParseTarget(text);
  EXPECT_TRUE(target.ok()) << text << ": " << target.status();
  return target.ok() ? *target : RequestTarget();
}

std::string ErrorOf(absl::string_view text) { return std::string(ParseTarget(text).status().message()); }

TEST(ParseTargetTest, DecodesPathAndParameters) {
  const RequestTarget target = Parsed("/api/pro%66ile?comm=My+App%2B1&pid=7&empty=&flag");
  EXPECT_EQ(target.path, "/api/profile");
  ASSERT_EQ(target.parameters.size(), 4u);
  EXPECT_EQ(target.parameters[0].value, "My App+1");
  EXPECT_EQ(target.parameters[2].name, "empty");
  EXPECT_EQ(target.parameters[2].value, "");
  EXPECT_EQ(target.parameters[3].name, "flag");
}

TEST(ParseTargetTest, APlusInAPathIsAPlus) { EXPECT_EQ(Parsed("/a+b").path, "/a+b"); }

TEST(ParseTargetTest, RefusesWhatIsNoAddress) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("no path"));
  EXPECT_THAT(ErrorOf("api"), HasSubstr("no path"));
  EXPECT_THAT(ErrorOf("http://host/"), HasSubstr("no path"));
  EXPECT_THAT(ErrorOf("/a%2"), HasSubstr("hexadecimal"));
  EXPECT_THAT(ErrorOf("/a%zz"), HasSubstr("hexadecimal"));
  EXPECT_THAT(ErrorOf("/a?b=%00"), HasSubstr("control character"));
  EXPECT_THAT(ErrorOf("/a%0d%0aSet-Cookie:x"), HasSubstr("control character"));
  EXPECT_THAT(ErrorOf("/a?b=%ff"), HasSubstr("UTF-8"));
  EXPECT_THAT(ErrorOf(absl::StrCat("/", std::string(kMaxTargetBytes, 'a'))), HasSubstr("too long"));
  std::string many = "/?";
  for (size_t i = 0; i <= kMaxQueryParameters; ++i) absl::StrAppend(&many, "p", i, "=1&");
  EXPECT_THAT(ErrorOf(many), HasSubstr("too many"));
}

TEST(ParseQueryTimeTest, TakesEachForm) {
  EXPECT_EQ(*ParseQueryTime("now", kNow), kNow);
  EXPECT_EQ(*ParseQueryTime("-90s", kNow), kNow - 90 * kSecondNs);
  EXPECT_EQ(*ParseQueryTime("-1.5m", kNow), kNow - 90 * kSecondNs);
  EXPECT_EQ(*ParseQueryTime("-2h", kNow), kNow - 7200 * kSecondNs);
  EXPECT_EQ(*ParseQueryTime("-1d", kNow), kNow - 86400 * kSecondNs);
  EXPECT_EQ(*ParseQueryTime("1790000000", 0), kNow);
  EXPECT_EQ(*ParseQueryTime("1790000000.123456789", 0), kNow + 123456789);
  EXPECT_EQ(*ParseQueryTime("1790000000.1234567899", 0), kNow + 123456789);
  EXPECT_EQ(*ParseQueryTime("2026-09-21T14:13:20Z", 0), kNow);
  EXPECT_EQ(*ParseQueryTime("2026-09-21T16:13:20+02:00", 0), kNow);
  EXPECT_EQ(*ParseQueryTime("2026-09-21T16:13:20 02:00", 0), kNow) << "a + that nobody encoded";
  EXPECT_EQ(*ParseQueryTime("-100000d", kNow), 0u) << "further back than there is time";
}

TEST(ParseQueryTimeTest, RefusesTheRest) {
  for (const absl::string_view text : {"",
                                       "-",
                                       "-5",
                                       "5m",
                                       "-5x",
                                       "--5m",
                                       "-m",
                                       "1.",
                                       ".5",
                                       "1e9",
                                       "+5",
                                       "0x10",
                                       "99999999999999999999",
                                       "1.2.3",
                                       "9223372037",
                                       "-99999999999999d",
                                       "2026-09-21",
                                       "2026-09-21T25:00:00Z",
                                       "1600-01-01T00:00:00Z",
                                       "2600-01-01T00:00:00Z",
                                       "tomorrow",
                                       "NaN"}) {
    EXPECT_FALSE(ParseQueryTime(text, kNow).ok()) << text;
  }
}

TEST(QueryReaderTest, SelectionHasAllItsFields) {
  const RequestTarget target = Parsed("/x?from=-10m&to=-5m&pid=4711&comm=Shop&container=web&thread=main");
  QueryReader reader(target, kNow);
  const HistorySelection selection = reader.Selection();
  ASSERT_TRUE(reader.Finish().ok());
  EXPECT_EQ(selection.from_unix_ns, kNow - 600 * kSecondNs);
  EXPECT_EQ(selection.to_unix_ns, kNow - 300 * kSecondNs);
  EXPECT_EQ(selection.pid, 4711u);
  EXPECT_EQ(selection.comm, "Shop");
  EXPECT_EQ(selection.container, "web");
  EXPECT_EQ(selection.thread, "main");
}

TEST(QueryReaderTest, TheLastFiveMinutesAreTheDefault) {
  const RequestTarget target = Parsed("/x");
  QueryReader reader(target, kNow);
  const HistorySelection selection = reader.Selection();
  EXPECT_TRUE(reader.Finish().ok());
  EXPECT_EQ(selection.from_unix_ns, kNow - 300 * kSecondNs);
  EXPECT_EQ(selection.to_unix_ns, kNow);
  EXPECT_FALSE(selection.pid || selection.comm || selection.container || selection.thread);
}

std::string SelectionError(absl::string_view query) {
  const RequestTarget target = Parsed(absl::StrCat("/x?", query));
  QueryReader reader(target, kNow);
  (void)reader.Selection();
  return std::string(reader.Finish().message());
}

TEST(QueryReaderTest, AMistakeIsAnErrorAndNeverTheWholeHost) {
  EXPECT_THAT(SelectionError("pdi=4711"), HasSubstr("pdi is not known"));
  EXPECT_THAT(SelectionError("PID=4711"), HasSubstr("PID is not known"));
  EXPECT_THAT(SelectionError("pid=1&pid=2"), HasSubstr("more than once"));
  EXPECT_THAT(SelectionError("pid="), HasSubstr("whole number"));
  EXPECT_THAT(SelectionError("pid=-1"), HasSubstr("whole number"));
  EXPECT_THAT(SelectionError("pid=0"), HasSubstr("whole number"));
  EXPECT_THAT(SelectionError("pid=4711x"), HasSubstr("whole number"));
  EXPECT_THAT(SelectionError("pid= 1"), HasSubstr("whole number"));
  EXPECT_THAT(SelectionError("pid=99999999999"), HasSubstr("whole number"));
  EXPECT_THAT(SelectionError("comm="), HasSubstr("comm is empty"));
  EXPECT_THAT(SelectionError("from=now&to=-5m"), HasSubstr("not before"));
  EXPECT_THAT(SelectionError("from=now"), HasSubstr("not before"));
  EXPECT_THAT(SelectionError("from=yesterday"), HasSubstr("no time"));
}

TEST(QueryReaderTest, WordsAreOfAList) {
  const RequestTarget target = Parsed("/x?view=heap&by=container");
  QueryReader reader(target, kNow);
  EXPECT_EQ(reader.Word("by", {"process", "container"}), "container");
  EXPECT_EQ(reader.Word("format", {"pprof", "html"}), "pprof") << "the first one where none is given";
  EXPECT_EQ(reader.Word("view", {"cpu", "jit"}), "cpu");
  const absl::Status status = reader.Finish();
  EXPECT_THAT(std::string(status.message()), HasSubstr("view=heap"));
  EXPECT_THAT(HintOf(status), HasSubstr("cpu, jit"));
}

TEST(QueryReaderTest, ABaseRangeMustBeGiven) {
  const RequestTarget target = Parsed("/x?base_from=-1h");
  QueryReader reader(target, kNow);
  uint64_t from = 0, to = 0;
  reader.Range("base_", true, from, to);
  EXPECT_THAT(std::string(reader.Finish().message()), HasSubstr("base_from and base_to are missing"));
}

TEST(PercentEncodeTest, ComesBackAsItWas) {
  const std::string text = "a b+c&d=e/%f?#\xC3\xBC{}\"";
  const RequestTarget target = Parsed(absl::StrCat("/?name=", PercentEncode(text)));
  EXPECT_EQ(target.parameters[0].value, text);
}

}  // namespace
}  // namespace clrsampler
