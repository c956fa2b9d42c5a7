#include "formats/proc/environ_text.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

// A literal with the NULs inside it, and without the one that the compiler adds.
template <size_t N>
absl::string_view WithNuls(const char (&literal)[N]) {
  return absl::string_view(literal, N - 1);
}

const absl::string_view kText =
    WithNuls("HOME=/root\0HOSTNAME=web-1\0DOTNET_gcServer=1\0COMPlus_PerfMapEnabled=0x3\0HOME=/other\0");

TEST(EnvironTextTest, TheFirstSettingOfAWholeNameCounts) {
  EXPECT_EQ(EnvironmentValue(kText, "HOME"), "/root");
  EXPECT_EQ(EnvironmentValue(kText, "HOST"), std::nullopt);
  EXPECT_EQ(EnvironmentValue("", "HOME"), std::nullopt);
}

TEST(EnvironTextTest, RuntimeSettingsHaveTwoPrefixesAndACase) {
  EXPECT_EQ(RuntimeSetting(kText, "gcServer"), "1");
  EXPECT_EQ(RuntimeSetting(kText, "GCServer"), std::nullopt);
  EXPECT_EQ(RuntimeNumber(kText, "PerfMapEnabled"), 3u);
  EXPECT_EQ(RuntimeSetting(kText, "PerfMap"), std::nullopt);
  const absl::string_view both = WithNuls("COMPlus_EnableDiagnostics=1\0DOTNET_EnableDiagnostics=0\0");
  EXPECT_EQ(RuntimeNumber(both, "EnableDiagnostics"), 0u);
  EXPECT_EQ(RuntimeNumber("DOTNET_PerfMapEnabled=yes", "PerfMapEnabled"), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
