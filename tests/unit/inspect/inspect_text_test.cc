#include "inspect/inspect_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "unit/inspect/sample_facts.h"

namespace clrsampler {
namespace {

using nlohmann::json;

ProcessList Two() {
  ProcessList list;
  list.dotnet.push_back(HealthyProcess());
  ProcessFacts closed;
  closed.pid = 12;
  closed.comm = "x";
  closed.readable = absl::PermissionDeniedError("/proc/12/maps: Permission denied");
  closed.threads.runtime_threads = true;
  list.dotnet.push_back(closed);
  list.others = 5;
  return list;
}

TEST(InspectTextTest, ATableHasAlignedColumnsAndCountsTheRest) {
  const std::vector<std::string> lines = absl::StrSplit(ProcessTableText(Two()), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], "4711  Shop.Api  -          10.0.14  framework-dependent  x64   server  memory,r2r  full");
  EXPECT_EQ(lines[2].find("none"), lines[0].find("SOURCES"));
  EXPECT_THAT(lines[2], testing::EndsWith("poor (/proc/12/maps: Permission denied)"));
  EXPECT_EQ(lines[3], "2 .NET processes, 5 others");
  EXPECT_EQ(ProcessTableText({}), "0 .NET processes, 0 others\n");
  ProcessList closed;
  closed.unreadable = 2;
  closed.how_to_read = "run as root";
  EXPECT_EQ(ProcessTableText(closed), "0 .NET processes, 0 others, 2 that can't be read (run as root)\n");
}

TEST(InspectTextTest, AnEmulatedProgramSaysThatItIsOne) {
  ProcessList list;
  list.dotnet.push_back(EmulatedProgram());
  const std::vector<std::string> lines = absl::StrSplit(ProcessTableText(list), '\n', absl::SkipEmpty());
  EXPECT_EQ(lines[1],
            "4711  qemu-aarch64-st  -          10.0.14  emulated  arm64  server  none     "
            "poor (arm64 program under emulation: names are not possible)");
  const json process = json::parse(ProcessListJson(list))["processes"][0];
  EXPECT_EQ(process["form"], "emulated");
  EXPECT_EQ(process["arch"], "arm64");
  EXPECT_EQ(process["reason"], "arm64 program under emulation: names are not possible");
}

TEST(InspectTextTest, NothingOfAProcessReachesTheTerminalAsAControl) {
  ProcessList list = Two();
  list.dotnet[0].comm = "a\x1b[2Jb\nc";
  list.dotnet[0].runtime->standalone_gc = Mapping{.path = "/x\x1b]0;y\x07"};
  DoctorReport report;
  report.processes.push_back({1, "a\x1b[2Jb", {{FindingLevel::kWarn, "c", "it's \x1b[2J", "\r"}}});
  for (const std::string& text :
       {ProcessTableText(list), DoctorText(report), ProcessListJson(list), DoctorJson(report)}) {
    for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
  }
  EXPECT_THAT(DoctorText(report), testing::HasSubstr("it's "));
}

TEST(InspectTextTest, JsonHoldsTheSameFacts) {
  const json parsed = json::parse(ProcessListJson(Two()));
  ASSERT_EQ(parsed["processes"].size(), 2u);
  const json& first = parsed["processes"][0];
  EXPECT_EQ(first["pid"], 4711);
  EXPECT_EQ(first["runtime"], "10.0.14");
  EXPECT_EQ(first["form"], "framework-dependent");
  EXPECT_EQ(first["gc"], "server");
  EXPECT_EQ(first["composite"], false);
  EXPECT_EQ(first["symbol_sources"], (json{"memory", "r2r"}));
  EXPECT_EQ(first["profiling"], "full");
  EXPECT_EQ(parsed["processes"][1]["readable"], false);
  EXPECT_EQ(parsed["others"], 5);
}

TEST(InspectTextTest, DoctorSaysOneLineAFindingAndTheVerdict) {
  DoctorReport report;
  report.host = {{FindingLevel::kPass, "a", "fine", ""}, {FindingLevel::kFail, "b", "broken", "mend it"}};
  EXPECT_EQ(DoctorText(report), "pass  fine\nfail  broken  fix: mend it\n\nprofiling will not work\n");
  const json parsed = json::parse(DoctorJson(report));
  EXPECT_EQ(parsed["profiling_will_work"], false);
  EXPECT_EQ(parsed["host"][1]["level"], "fail");
  EXPECT_EQ(parsed["host"][1]["fix"], "mend it");
}

}  // namespace
}  // namespace clrsampler
