#include "runtime_events/jit_watch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// The compilations of a program that makes dynamic methods without end.
TEST(JitWatchRoleTest, RolesAreOnTheAccountOfTheirProcess) {
  FrameTable frames;
  Symbolizer symbolizer({}, frames);
  FakeClock clock;
  JitWatch watch({}, /*stacks=*/false, NameStyle::kRaw, symbolizer, frames, clock);
  RuntimeActivity activity;
  const auto role_of = [&](const Process& process, const std::string& name) {
    wire_compiled event{};
    event.entry = 0x1000;
    std::strncpy(event.name, name.c_str(), sizeof event.name - 1);
    const CompiledEvent compiled = watch.Ended(process, event, nullptr, {}, activity);
    return frames.at(watch.RoleOf(process, compiled.number).value_or(0)).text;
  };
  const Process hostile{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
  const Process other{ProcessKey{8, 1}, TargetFiles("/nonexistent", 8)};
  const std::string first = role_of(hostile, "M0");
  EXPECT_NE(first, "[jit]");
  int made = 1;
  while (made < 500'000 && role_of(hostile, absl::StrCat("M", made)) != "[jit]") ++made;
  EXPECT_GT(made, 10'000);
  EXPECT_LT(frames.bytes(), NameBudget::kMaxNameBytes + (64 << 10));
  EXPECT_EQ(role_of(hostile, "M0"), first) << "it is known";
  EXPECT_NE(role_of(other, "Other"), "[jit]");
}

}  // namespace
}  // namespace clrsampler
