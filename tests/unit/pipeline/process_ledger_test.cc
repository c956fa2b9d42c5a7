#include "pipeline/process_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

Process Make(uint32_t tgid, uint32_t incarnation, std::string comm) {
  Process process(ProcessKey{tgid, incarnation}, TargetFiles("/nonexistent", tgid));
  process.comm = std::move(comm);
  return process;
}

TEST(ProcessLedgerTest, HostRunsTellProcessesOfOneNameApart) {
  StackTable stacks;
  ProcessLedger ledger(stacks, /*with_pid=*/true);
  EXPECT_EQ(stacks.label(ledger.Count(Make(7, 1, "web"), 0)), "web-7");
  EXPECT_EQ(stacks.label(ledger.Count(Make(8, 2, "web"), 0)), "web-8");
  StackTable other;
  ProcessLedger single(other, /*with_pid=*/false);
  EXPECT_EQ(other.label(single.Count(Make(7, 1, "web"), 0)), "web");
}

TEST(ProcessLedgerTest, AccountsAreSortedAndNameTheirSources) {
  StackTable stacks;
  ProcessLedger ledger(stacks, false);
  ledger.Count(Make(7, 1, "a"), 1u << static_cast<int>(NameSource::kJitdump));
  Process in_service = Make(8, 2, "b");
  in_service.container.cgroup.service = "shop.service";
  for (int i = 0; i < 3; ++i) ledger.Count(in_service, 1u << static_cast<int>(NameSource::kNone));
  ledger.SetRuntime({7, 1}, "10.0.12");
  const auto accounts = ledger.Accounts();
  ASSERT_EQ(accounts.size(), 2u);
  EXPECT_EQ(accounts[0].pid, 8u);
  EXPECT_TRUE(accounts[0].symbol_sources.empty());
  EXPECT_EQ(accounts[0].container, "shop.service");
  EXPECT_EQ(accounts[1].runtime, "10.0.12");
  EXPECT_THAT(accounts[1].symbol_sources, testing::ElementsAre("jitdump"));
}

}  // namespace
}  // namespace clrsampler
