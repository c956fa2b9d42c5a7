#include "inspect/host_checks.h"

#include <gtest/gtest.h>
#include <linux/capability.h>

#include "unit/inspect/sample_facts.h"

namespace clrsampler {
namespace {

const Finding* Find(const Findings& findings, absl::string_view check, FindingLevel level) {
  for (const Finding& finding : findings) {
    if (finding.check == check && finding.level == level) return &finding;
  }
  return nullptr;
}

uint64_t Only(std::initializer_list<int> capabilities) {
  uint64_t bits = 0;
  for (const int one : capabilities) bits |= uint64_t{1} << one;
  return bits;
}

// Linux 5.13 and before.
HostFacts KernelWithoutSyscallPrograms() {
  HostFacts facts = HealthyHost();
  facts.features.features.back().present = false;
  return facts;
}

TEST(HostChecksTest, AHealthyHostPasses) {
  for (const Finding& finding : CheckHost(HealthyHost())) {
    EXPECT_EQ(finding.level, FindingLevel::kPass) << finding.what;
    EXPECT_EQ(finding.fix, "") << finding.what;
  }
}

TEST(HostChecksTest, WithoutPrivilegesOneLineFailsAndTheRestIsAnswered) {
  HostFacts facts = HealthyHost();
  facts.root = false;
  facts.capabilities = 0;
  facts.features.features = {{std::string(kFeatureBtf), true, true, ""},
                             {std::string(kFeaturePerfEventProgram), false, true, ""}};
  facts.features.load_error = EPERM;
  const Findings findings = CheckHost(facts);
  int failures = 0;
  for (const Finding& finding : findings) {
    failures += finding.level == FindingLevel::kFail;
    EXPECT_EQ(finding.level == FindingLevel::kPass, finding.fix.empty()) << finding.what;
  }
  EXPECT_EQ(failures, 1);
  ASSERT_NE(Find(findings, "capabilities", FindingLevel::kFail), nullptr);
  EXPECT_NE(Find(findings, "capabilities", FindingLevel::kFail)->fix.find("sudo"), std::string::npos);
  EXPECT_NE(Find(findings, "btf", FindingLevel::kPass), nullptr);
  EXPECT_GT(findings.size(), 8u);
}

TEST(HostChecksTest, WhetherKptrRestrictBindsIsOnlySaidWhereItWasTried) {
  HostFacts facts = HealthyHost();
  facts.kptr_restrict = 2;
  EXPECT_EQ(Find(CheckHost(facts), "kptr_restrict", FindingLevel::kPass)->what,
            "kernel.kptr_restrict is 2, which does not bind us");
  facts = KernelWithoutSyscallPrograms();
  facts.root = false;
  facts.capabilities = 0;
  facts.features.load_error = EPERM;
  facts.kptr_restrict = 1;
  EXPECT_EQ(Find(CheckHost(facts), "kptr_restrict", FindingLevel::kPass)->what,
            "kernel.kptr_restrict is 1, which matters only before Linux 5.14");
}

TEST(HostChecksTest, LesserCapabilitiesOnlyWarn) {
  HostFacts facts = HealthyHost();
  facts.capabilities = Only({CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE});
  const Findings findings = CheckHost(facts);
  EXPECT_FALSE(AnyFails(findings));
  EXPECT_NE(Find(findings, "capabilities", FindingLevel::kWarn), nullptr);
  facts.capabilities = Only({CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH});
  EXPECT_NE(Find(CheckHost(facts), "capabilities", FindingLevel::kPass), nullptr);
}

TEST(HostChecksTest, EachMissingRequirementFails) {
  HostFacts facts = HealthyHost();
  facts.features.lockdown = "confidentiality";
  EXPECT_NE(Find(CheckHost(facts), "lockdown", FindingLevel::kFail), nullptr);
  facts = HealthyHost();
  facts.features.features[0].present = false;
  EXPECT_NE(Find(CheckHost(facts), "btf", FindingLevel::kFail), nullptr);
  facts = HealthyHost();
  facts.features.features[2].present = false;
  EXPECT_NE(Find(CheckHost(facts), "bpf", FindingLevel::kFail), nullptr);
  facts = HealthyHost();
  facts.features.load_error = EPERM;  // in spite of all privileges: seccomp
  EXPECT_NE(Find(CheckHost(facts), "bpf", FindingLevel::kFail), nullptr);
  facts = HealthyHost();
  facts.perf_event_max_sample_rate = 50;
  EXPECT_NE(Find(CheckHost(facts), "perf_event_max_sample_rate", FindingLevel::kFail), nullptr);
  facts = HealthyHost();
  facts.perf_events_refused = true;
  EXPECT_NE(Find(CheckHost(facts), "perf_event_paranoid", FindingLevel::kFail), nullptr);
  facts.perf_event_paranoid.reset();
  EXPECT_NE(Find(CheckHost(facts), "perf_event_paranoid", FindingLevel::kFail), nullptr);
  facts = HealthyHost();
  facts.architecture = "riscv64";
  EXPECT_NE(Find(CheckHost(facts), "kernel", FindingLevel::kFail), nullptr);
}

TEST(HostChecksTest, AnOptionalFeatureThatIsMissingIsNoTrouble) {
  HostFacts facts = HealthyHost();
  facts.features.features.push_back({"bpf_loop", false, false, "Linux 5.17; not needed"});
  EXPECT_FALSE(AnyFails(CheckHost(facts)));
  EXPECT_EQ(Find(CheckHost(facts), "bpf", FindingLevel::kWarn), nullptr);
}

TEST(HostChecksTest, TheDocumentedCapabilitiesAreEnoughWhereTheKernelNamesItsCode) {
  HostFacts facts = HealthyHost();
  facts.root = false;
  facts.capabilities = Only({CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE});
  for (const int restricted : {0, 1, 2}) {
    facts.kptr_restrict = restricted;
    EXPECT_NE(Find(CheckHost(facts), "capabilities", FindingLevel::kPass), nullptr);
    EXPECT_NE(Find(CheckHost(facts), "kptr_restrict", FindingLevel::kPass), nullptr);
  }
}

TEST(HostChecksTest, AKernelThatOnlyListsItsNamesNeedsCapSyslog) {
  HostFacts facts = KernelWithoutSyscallPrograms();
  facts.capabilities = Only({CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE});
  facts.kptr_restrict = 1;
  const Findings findings = CheckHost(facts);
  const Finding* const without = Find(findings, "capabilities", FindingLevel::kWarn);
  ASSERT_NE(without, nullptr);
  EXPECT_NE(without->what.find("CAP_SYSLOG"), std::string::npos);
  EXPECT_NE(without->fix.find("cap_syslog"), std::string::npos);
  EXPECT_NE(Find(findings, "kptr_restrict", FindingLevel::kWarn), nullptr);
}

TEST(HostChecksTest, HindrancesWarn) {
  HostFacts facts = KernelWithoutSyscallPrograms();
  facts.kptr_restrict = 2;
  facts.ptrace_scope = 3;
  facts.own_pid_namespace = true;
  facts.available_bytes = 1 << 20;
  facts.other_agents = {12, 13};
  const Findings findings = CheckHost(facts);
  for (const char* check : {"kptr_restrict", "ptrace_scope", "pid_namespace", "ring_memory", "other_agents"}) {
    EXPECT_NE(Find(findings, check, FindingLevel::kWarn), nullptr) << check;
  }
  EXPECT_FALSE(AnyFails(findings));
}

}  // namespace
}  // namespace clrsampler
