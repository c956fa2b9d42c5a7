// Base of tests that load BPF programs, open perf events or start other programs.
//
// Where that can't be done they skip and say why. Under CLRSAMPLER_REQUIRE_LIVE=1 a skip is a failure.
#ifndef CLRSAMPLER_TESTS_LIVE_H_
#define CLRSAMPLER_TESTS_LIVE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace clrsampler::test_support {

// Why BPF can't be used here; empty when it can.
inline std::string WhyNoBpf() {
  if (geteuid() != 0) return "not root";
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) return "no /sys/kernel/btf/vmlinux";
  return "";
}

inline bool LiveIsRequired() {
  const char* value = std::getenv("CLRSAMPLER_REQUIRE_LIVE");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

// Derive, and override WhyNot for what the tests need beyond BPF.
class LiveTest : public ::testing::Test {
 protected:
  virtual std::string WhyNot() { return WhyNoBpf(); }
  void SetUp() override {
    const std::string reason = WhyNot();
    if (reason.empty()) return;
    if (LiveIsRequired()) FAIL() << "CLRSAMPLER_REQUIRE_LIVE is set, but: " << reason;
    GTEST_SKIP() << "NOT TESTED: " << reason;
  }
};

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_LIVE_H_
