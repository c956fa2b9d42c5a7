#include "pipeline/kernel_namer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;

KernelSymbols FromFile() {
  return KernelSymbols(NameStyle::kShort,
                       [] { return std::string("ffffffff81000000 T from_file\nffffffff81001000 T next\n"); });
}

class KernelNamerTest : public testing::Test {
 protected:
  std::vector<std::string> Name(KernelNamer& namer, std::vector<uint64_t> addresses) {
    std::vector<FrameId> ids;
    namer.Append(addresses, ids);
    std::vector<std::string> texts;
    for (const FrameId id : ids) texts.push_back(frames_.at(id).text);
    return texts;
  }
  FrameTable frames_;
};

TEST_F(KernelNamerTest, EachAddressIsAskedOnceAndReturnAddressesOneByteBefore) {
  std::vector<uint64_t> asked;
  KernelNamer namer(
      frames_, NameStyle::kShort,
      [&](std::span<const uint64_t> addresses) {
        asked.insert(asked.end(), addresses.begin(), addresses.end());
        std::vector<std::string> texts;
        for (const uint64_t address : addresses) texts.push_back("f" + std::to_string(address) + " [mod]");
        return absl::StatusOr<std::vector<std::string>>(texts);
      },
      FromFile());
  EXPECT_THAT(Name(namer, {10, 20}), ElementsAre("f19", "f10"));
  EXPECT_THAT(Name(namer, {10, 20, 30}), ElementsAre("f29", "f19", "f10"));
  EXPECT_THAT(asked, ElementsAre(10, 19, 29));
}

TEST_F(KernelNamerTest, FullStyleKeepsTheModule) {
  KernelNamer namer(
      frames_, NameStyle::kFull,
      [](std::span<const uint64_t>) {
        return absl::StatusOr<std::vector<std::string>>(std::vector<std::string>{"hook [nf_conntrack]"});
      },
      FromFile());
  EXPECT_THAT(Name(namer, {10}), ElementsAre("hook [nf_conntrack]"));
}

TEST_F(KernelNamerTest, AKernelThatCantAnswerGetsTheFile) {
  int asked = 0;
  KernelNamer namer(
      frames_, NameStyle::kShort,
      [&](std::span<const uint64_t>) {
        ++asked;
        return absl::StatusOr<std::vector<std::string>>(absl::UnimplementedError("old"));
      },
      FromFile());
  EXPECT_THAT(Name(namer, {0xffffffff81000010}), ElementsAre("from_file"));
  EXPECT_THAT(Name(namer, {0xffffffff81000020}), ElementsAre("from_file"));
  EXPECT_EQ(asked, 1);
}

TEST_F(KernelNamerTest, AnAddressOfNothingSaysSo) {
  KernelNamer namer(
      frames_, NameStyle::kShort,
      [](std::span<const uint64_t> addresses) {
        return absl::StatusOr<std::vector<std::string>>(std::vector<std::string>(addresses.size()));
      },
      FromFile());
  EXPECT_THAT(Name(namer, {1}), ElementsAre("[kernel]"));
}

}  // namespace
}  // namespace clrsampler
