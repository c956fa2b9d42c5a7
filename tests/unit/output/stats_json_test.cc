#include "output/stats_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace clrsampler {
namespace {

TEST(StatsJsonTest, HasTheDocumentedKeys) {
  Account account;
  account.samples_expected = 100;
  account.samples_taken = 99;
  account.samples_written = 98;
  account.lost["ring_full"] = 1;
  account.CountFrame(Frame{FrameKind::kJit, NameSource::kJitdump, "A.B", "", ""}, 5);
  account.CountFrame(Frame{FrameKind::kR2r, NameSource::kNone, "[r2r unknown X.dll]", "", ""}, 2);
  account.CountFrame(Frame{FrameKind::kKernel, NameSource::kKallsyms, "schedule", "", ""}, 3);
  account.stacks_complete = 90;
  account.processes.push_back({4711, "web", "10.0.12", {"jitdump", "r2r-image"}, 98, "shop-1", "abc", "uid", {}});
  account.processes[0].labels.Set(LabelKey::kServiceName, "shop");
  const auto written = nlohmann::json::parse(StatsJson(account));
  EXPECT_EQ(written["samples"]["expected"], 100);
  EXPECT_EQ(written["samples"]["lost"]["ring_full"], 1);
  EXPECT_EQ(written["frames"]["managed"]["named"], 5);
  EXPECT_EQ(written["frames"]["managed"]["unnamed"], 2);
  EXPECT_EQ(written["frames"]["kernel"]["named"], 3);
  EXPECT_EQ(written["frames"]["by_source"]["jitdump"], 5);
  EXPECT_EQ(written["frames"]["unnamed_reasons"]["[r2r unknown X.dll]"], 2);
  EXPECT_EQ(written["stacks"]["complete"], 90);
  EXPECT_EQ(written["processes"][0]["runtime"], "10.0.12");
  EXPECT_EQ(written["processes"][0]["container"], "shop-1");
  EXPECT_EQ(written["processes"][0]["container_id"], "abc");
  EXPECT_EQ(written["processes"][0]["pod_uid"], "uid");
  EXPECT_EQ(written["processes"][0]["labels"]["service.name"], "shop");
  EXPECT_EQ(written["processes"][0]["symbol_sources"][1], "r2r-image");
  for (const char* key : {"cpu_seconds", "peak_rss_bytes", "bpf_map_bytes"})
    EXPECT_TRUE(written["self"].contains(key)) << key;
}

TEST(StatsJsonTest, TheThreadPoolIsThereWhereItIsKnown) {
  const auto without = nlohmann::json::parse(StatsJson(Account()));
  EXPECT_FALSE(without.contains("thread_pool"));
  EXPECT_FALSE(without.contains("thread_pool_numbers"));
  const auto numbers = [](std::optional<uint64_t> queued) {
    return nlohmann::json::parse(
        StatsJson(Account(), {.verdict = "not starved", .numbers = PoolNumbers{2, 64, 24, queued}}));
  };
  EXPECT_EQ(numbers(7)["thread_pool"], "not starved");
  EXPECT_EQ(numbers(7)["thread_pool_numbers"],
            nlohmann::json::parse(R"({"workers":24,"min_workers":2,"max_workers":64,"queued":7})"));
  EXPECT_FALSE(numbers(std::nullopt)["thread_pool_numbers"].contains("queued"));
  const auto both = nlohmann::json::parse(StatsJson(Account(), {"starved", PoolNumbers{2, 64, 24, 7, 8, 9}}));
  EXPECT_EQ(both["thread_pool_numbers"]["working"], 8);
  EXPECT_EQ(both["thread_pool_numbers"]["wanted"], 9);
}

TEST(StatsJsonTest, AProcessNameThatIsNotUtf8IsStillJson) {
  Account account;
  account.processes.push_back({1, "\xff\xfe\"\n", "", {}, 1});
  EXPECT_TRUE(nlohmann::json::accept(StatsJson(account)));
}

}  // namespace
}  // namespace clrsampler
