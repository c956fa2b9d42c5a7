#include "clr/perf_map/lease_record.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

constexpr char kBegin[] = "clrsampler-lease 1\nagent 10 20\nboot 0a1b\nagent_pid_namespace 4026531836\n";
constexpr char kTarget[] = "target 42 99 7\n";
constexpr char kEnd[] = "namespaces 4026531836 4026531840\nroot 2049 2\nowner 1000\ncreated 5\ndirectory /tmp\n";

TEST(LeaseRecordTest, WhatIsReadIsWrittenAgain) {
  const std::string text = absl::StrCat(kBegin, kTarget, kEnd, "file 2049 17 perf-7.map\n");
  const auto record = ParseLeaseRecord(text);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(EncodeLeaseRecord(*record), text);
  EXPECT_EQ(ParseLeaseRecord(text + "file 2049 18 perfi")->files, record->files) << "its writer was killed";
}

TEST(LeaseRecordTest, FilesAreThoseOfTheTargetWhereverItsLineStands) {
  for (const char* file : {"file 1 2 perf-0.map\n", "file 1 2 perf-8.map\n", "file 1 2 ../perf-7.map\n"}) {
    EXPECT_FALSE(ParseLeaseRecord(absl::StrCat(kBegin, file, kTarget, kEnd)).ok()) << file;
    EXPECT_FALSE(ParseLeaseRecord(absl::StrCat(kBegin, kTarget, kEnd, file)).ok()) << file;
  }
  EXPECT_TRUE(ParseLeaseRecord(absl::StrCat(kBegin, "file 1 2 perfinfo-7.map\n", kTarget, kEnd)).ok());
}

}  // namespace
}  // namespace clrsampler
