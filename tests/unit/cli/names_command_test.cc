#include "cli/names_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace clrsampler {
namespace {

TEST(NamesRowTest, HasTypeMethodModuleAndTier) {
  Frame frame;
  frame.kind = FrameKind::kJit;
  frame.source = NameSource::kRuntimeMemory;
  frame.text = "Shop.Order::Total(int32)";
  frame.module = "Shop.dll";
  frame.tier = "Tier1";
  EXPECT_EQ(NamesRow(0x7f12, frame, false),
            "7f12\tjit\tmemory\tShop.Order\tTotal\tShop.dll\tTier1\tShop.Order::Total(int32)");
}

TEST(NamesRowTest, NamesOfATargetMakeNoColumnsRowsAndCommandsOfTheTerminal) {
  Frame frame;
  frame.kind = FrameKind::kJit;
  frame.source = NameSource::kRuntimeMemory;
  frame.text = "Evil\t\n::Run\x1b]0;owned\x07(int32)";
  frame.module = "a\tb\r\nc";
  frame.tier = "Tier\x1b[2J";
  frame.place.file = "x\ty\n";
  for (const bool with_line : {false, true}) {
    const std::string row = NamesRow(0x7f12, frame, with_line);
    EXPECT_EQ(std::count(row.begin(), row.end(), '\t'), with_line ? 11 : 7) << row;
    EXPECT_TRUE(std::none_of(row.begin(), row.end(), [](char c) { return c != '\t' && c >= 0 && c < ' '; })) << row;
  }
}

}  // namespace
}  // namespace clrsampler
