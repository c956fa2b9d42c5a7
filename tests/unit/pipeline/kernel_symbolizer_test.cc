#include "pipeline/kernel_symbolizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clrsampler {
namespace {

using testing::ElementsAre;

KernelSymbols FromFile() {
  return KernelSymbols(NameStyle::kShort,
                       [] { return std::string("ffffffff81000000 T from_file\nffffffff81001000 T next\n"); });
}

class KernelSymbolizerTest : public testing::Test {
 protected:
  std::vector<std::string> Name(KernelSymbolizer& symbolizer, std::vector<uint64_t> addresses,
                                MonotonicTime time = {1000}) {
    std::vector<FrameId> ids;
    until_ = symbolizer.Append(addresses, time, ids);
    std::vector<std::string> texts;
    for (const FrameId id : ids) texts.push_back(frames_.at(id).text);
    return texts;
  }
  FrameTable frames_;
  MonotonicTime until_;  // of the last answer
};

TEST_F(KernelSymbolizerTest, EachAddressIsAskedOnceAndReturnAddressesOneByteBefore) {
  std::vector<uint64_t> asked;
  KernelSymbolizer symbolizer(
      frames_, NameStyle::kShort,
      [&](std::span<const uint64_t> addresses) {
        asked.insert(asked.end(), addresses.begin(), addresses.end());
        std::vector<std::string> texts;
        for (const uint64_t address : addresses) texts.push_back("f" + std::to_string(address) + " [mod]");
        return absl::StatusOr<std::vector<std::string>>(texts);
      },
      FromFile());
  EXPECT_THAT(Name(symbolizer, {10, 20}), ElementsAre("f19", "f10"));
  EXPECT_THAT(Name(symbolizer, {10, 20, 30}), ElementsAre("f29", "f19", "f10"));
  EXPECT_THAT(asked, ElementsAre(10, 19, 29));
}

TEST_F(KernelSymbolizerTest, FullStyleKeepsTheModule) {
  KernelSymbolizer symbolizer(
      frames_, NameStyle::kFull,
      [](std::span<const uint64_t>) {
        return absl::StatusOr<std::vector<std::string>>(std::vector<std::string>{"hook [nf_conntrack]"});
      },
      FromFile());
  EXPECT_THAT(Name(symbolizer, {10}), ElementsAre("hook [nf_conntrack]"));
}

TEST_F(KernelSymbolizerTest, AKernelThatCantAnswerGetsTheFile) {
  int asked = 0;
  KernelSymbolizer symbolizer(
      frames_, NameStyle::kShort,
      [&](std::span<const uint64_t>) {
        ++asked;
        return absl::StatusOr<std::vector<std::string>>(absl::UnimplementedError("old"));
      },
      FromFile());
  EXPECT_THAT(Name(symbolizer, {0xffffffff81000010}), ElementsAre("from_file"));
  EXPECT_THAT(Name(symbolizer, {0xffffffff81000020}), ElementsAre("from_file"));
  EXPECT_EQ(asked, 1);
}

TEST_F(KernelSymbolizerTest, AnAddressOfNothingSaysSo) {
  KernelSymbolizer symbolizer(
      frames_, NameStyle::kShort,
      [](std::span<const uint64_t> addresses) {
        return absl::StatusOr<std::vector<std::string>>(std::vector<std::string>(addresses.size()));
      },
      FromFile());
  EXPECT_THAT(Name(symbolizer, {1}), ElementsAre("[kernel]"));
}

// A module is unloaded, and another one's code is put where its was.
TEST_F(KernelSymbolizerTest, NamesOfModulesAndBpfProgramsAreAskedForAgain) {
  std::vector<uint64_t> asked;
  std::string module = "first [one]";
  KernelSymbolizer symbolizer(
      frames_, NameStyle::kShort,
      [&](std::span<const uint64_t> addresses) {
        std::vector<std::string> texts;
        for (const uint64_t address : addresses) {
          asked.push_back(address);
          texts.push_back(address == 10 ? "vfs_read" : address == 19 ? module : "bpf_prog_12_x");
        }
        return absl::StatusOr<std::vector<std::string>>(texts);
      },
      FromFile());
  EXPECT_THAT(Name(symbolizer, {10, 20, 30}), ElementsAre("bpf_prog_12_x", "first", "vfs_read"));
  EXPECT_EQ(until_, MonotonicTime{1000 + KernelSymbolizer::kModuleNs});
  module = "second [two]";
  EXPECT_THAT(Name(symbolizer, {10, 20}, {until_.ns - 1}), ElementsAre("first", "vfs_read"));
  asked.clear();
  EXPECT_THAT(Name(symbolizer, {10, 20}, until_), ElementsAre("second", "vfs_read"));
  EXPECT_THAT(asked, ElementsAre(19));
  EXPECT_THAT(Name(symbolizer, {10}), ElementsAre("vfs_read"));
  EXPECT_EQ(until_, MonotonicTime::Max()) << "the kernel proper stays";
}

TEST_F(KernelSymbolizerTest, TheFileIsReadAgainForModulesOnly) {
  int read = 0;
  KernelSymbols file(NameStyle::kShort, [&] {
    ++read;
    return "ffffffff81000000 T core\nffffffff81001000 T core_end\nffffffffc0000000 t " +
           std::string(read == 1 ? "first\t[one]" : "second\t[two]") + "\n";
  });
  KernelSymbolizer symbolizer(frames_, NameStyle::kShort, nullptr, std::move(file));
  EXPECT_THAT(Name(symbolizer, {0xffffffffc0000010, 0xffffffff81000010}), ElementsAre("core", "first"));
  EXPECT_EQ(until_, MonotonicTime{1000 + KernelSymbolizer::kFileNs});
  EXPECT_THAT(Name(symbolizer, {0xffffffff81000020}, until_), ElementsAre("core"));
  EXPECT_EQ(read, 1);
  EXPECT_THAT(Name(symbolizer, {0xffffffffc0000010}, {1000 + KernelSymbolizer::kFileNs}), ElementsAre("second"));
  EXPECT_THAT(Name(symbolizer, {0xffffffffc0000010}, {1001 + KernelSymbolizer::kFileNs}), ElementsAre("second"));
  EXPECT_EQ(read, 2);
}

}  // namespace
}  // namespace clrsampler
