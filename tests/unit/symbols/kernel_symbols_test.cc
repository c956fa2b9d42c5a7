#include "symbols/kernel_symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "status/status.h"

namespace clrsampler {
namespace {

KernelSymbols WithText(std::string text, NameStyle style = NameStyle::kShort) {
  return KernelSymbols(style, [text] { return absl::StatusOr<std::string>(text); });
}

constexpr char kText[] =
    "0000000000000000 A fixed_percpu_data\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81001000 T do_syscall_64\n"
    "ffffffff81001100 D some_data\n"
    "ffffffff81002000 W weak_one\n"
    "ffffffff81003000 T _etext\n"
    "ffffffffc0a01000 t nft_do_chain\t[nf_tables]\n"
    "ffffffffc0a02000 t $x\t[nf_tables]\n"
    "ffffffffc0026208 t bpf_prog_949ca2f26b1fafc1_walk_step\t[bpf]\n";

TEST(KernelSymbolsTest, NamesKernelModulesAndBpfPrograms) {
  KernelSymbols symbols = WithText(kText);
  const Frame frame = symbols.Resolve(0xffffffff81001110);
  EXPECT_EQ(frame.kind, FrameKind::kKernel);
  EXPECT_EQ(frame.source, NameSource::kKallsyms);
  EXPECT_EQ(frame.text, "do_syscall_64");
  EXPECT_EQ(frame.module, "kernel");
  EXPECT_EQ(symbols.Resolve(0xffffffff81000000).text, "_stext") << "the first of the aliases, as the kernel does";
  EXPECT_EQ(symbols.Resolve(0xffffffff81002fff).text, "weak_one");
  EXPECT_EQ(symbols.Resolve(0xffffffffc0a01010).text, "nft_do_chain");
  EXPECT_EQ(symbols.Resolve(0xffffffffc0a01010).module, "nf_tables");
  EXPECT_EQ(symbols.Resolve(0xffffffffc0026300).text, "bpf_prog_949ca2f26b1fafc1_walk_step");
  KernelSymbols full = WithText(kText, NameStyle::kFull);
  EXPECT_EQ(full.Resolve(0xffffffffc0a01010).text, "nft_do_chain [nf_tables]");
  EXPECT_EQ(full.Resolve(0xffffffff81001110).text, "do_syscall_64");
}

TEST(KernelSymbolsTest, AnAddressOutsideAnyFunctionSaysKernelOnly) {
  KernelSymbols symbols = WithText(kText);
  for (const uint64_t address : {uint64_t{0x1000}, uint64_t{0xffffffff80ffffff}, uint64_t{0xffffffff81003001},
                                 uint64_t{0xffffffffc0c00000}, ~uint64_t{0}}) {
    const Frame frame = symbols.Resolve(address);
    EXPECT_EQ(frame.text, "[kernel]") << std::hex << address;
    EXPECT_FALSE(frame.named());
  }
  EXPECT_TRUE(symbols.status().ok());
}

TEST(KernelSymbolsTest, PartsThatLieFarApartAreAllFound) {
  KernelSymbols symbols =
      WithText("ffff800010000000 T arm_text\nffff900000000000 t far_module\t[m]\nffffff8000000000 t farther\t[n]\n");
  EXPECT_EQ(symbols.Resolve(0xffff800010000004).text, "arm_text");
  EXPECT_EQ(symbols.Resolve(0xffff900000000004).text, "far_module");
  EXPECT_EQ(symbols.Resolve(0xffffff8000000004).text, "farther");
  EXPECT_EQ(symbols.Resolve(0xffffa00000000000).text, "[kernel]");
}

TEST(KernelSymbolsTest, HiddenAddressesAreAnErrorWithAHintAndFramesStillExist) {
  KernelSymbols symbols = WithText("0000000000000000 T _stext\n0000000000000000 T do_syscall_64\n");
  EXPECT_EQ(symbols.Resolve(0xffffffff81001110).text, "[kernel]");
  EXPECT_FALSE(symbols.status().ok());
  EXPECT_THAT(HintOf(symbols.status()), testing::HasSubstr("kernel.kptr_restrict"));
}

TEST(KernelSymbolsTest, ReadsOnceAndOnlyWhenAsked) {
  int reads = 0;
  KernelSymbols symbols(NameStyle::kShort, [&]() -> absl::StatusOr<std::string> {
    ++reads;
    return absl::UnavailableError("no such file");
  });
  EXPECT_EQ(reads, 0);
  symbols.Resolve(1);
  symbols.Resolve(2);
  EXPECT_EQ(reads, 1);
  EXPECT_FALSE(symbols.status().ok());
  symbols.Reload();
  symbols.Resolve(3);
  EXPECT_EQ(reads, 2);
}

TEST(KernelFrameTest, ReadsWhatTheKernelPrintsForAnAddress) {
  EXPECT_EQ(KernelFrame("vfs_read", NameStyle::kFull)->text, "vfs_read");
  EXPECT_EQ(KernelFrame("vfs_read", NameStyle::kFull)->module, "kernel");
  EXPECT_EQ(KernelFrame("nft_do_chain [nf_tables]", NameStyle::kFull)->text, "nft_do_chain [nf_tables]");
  EXPECT_EQ(KernelFrame("nft_do_chain [nf_tables]", NameStyle::kShort)->text, "nft_do_chain");
  EXPECT_EQ(KernelFrame("nft_do_chain [nf_tables]", NameStyle::kShort)->module, "nf_tables");
  // "%ps" leaves the mark out that /proc/kallsyms prints.
  EXPECT_EQ(KernelFrame("bpf_prog_949ca2f26b1fafc1_walk_step", NameStyle::kFull)->text,
            "bpf_prog_949ca2f26b1fafc1_walk_step [bpf]");
}

TEST(KernelFrameTest, WhatIsNoNameGivesNoFrame) {
  for (const char* text : {"", "0xffffffff81000000", "(null)"}) {
    EXPECT_FALSE(KernelFrame(text, NameStyle::kShort).has_value()) << text;
  }
}

TEST(KernelSymbolsTest, AgreesWithTheFileOfThisKernel) {
  const auto text = KernelSymbols::ReadProcKallsyms();
  if (!text.ok() || geteuid() != 0) GTEST_SKIP() << "needs root and /proc/kallsyms";
  KernelSymbols symbols(NameStyle::kShort);
  const size_t at = text->find(" T vfs_read\n");
  ASSERT_NE(at, std::string::npos);
  const uint64_t address = std::stoull(text->substr(at - 16, 16), nullptr, 16);
  if (address == 0) GTEST_SKIP() << "kernel.kptr_restrict hides addresses";
  EXPECT_EQ(symbols.Resolve(address + 4).text, "vfs_read");
  EXPECT_GT(symbols.size(), 10'000u);
  EXPECT_LT(symbols.memory_bytes(), text->size());
}

}  // namespace
}  // namespace clrsampler
