#include "formats/proc/kallsyms_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace clrsampler {
namespace {

TEST(KallsymsTextTest, ReadsKernelModuleAndBpfLines) {
  std::vector<KallsymsLine> lines;
  const size_t damaged = ForEachKallsymsLine(
      "ffffffff81000000 T _stext\nffffffffc0a01000 t nft_do_chain\t[nf_tables]\n"
      "ffffffffc0026208 t bpf_prog_949ca2f26b1fafc1_walk_step\t[bpf]\n0000000000000000 A fixed_percpu_data",
      [&](const KallsymsLine& line) { lines.push_back(line); });
  EXPECT_EQ(damaged, 0u);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].address, 0xffffffff81000000u);
  EXPECT_TRUE(lines[0].is_code());
  EXPECT_EQ(lines[0].module, "");
  EXPECT_EQ(lines[1].name, "nft_do_chain");
  EXPECT_EQ(lines[1].module, "nf_tables");
  EXPECT_EQ(lines[2].name, "bpf_prog_949ca2f26b1fafc1_walk_step");
  EXPECT_EQ(lines[2].module, "bpf");
  EXPECT_EQ(lines[3].name, "fixed_percpu_data");
  EXPECT_FALSE(lines[3].is_code());
}

TEST(KallsymsTextTest, CountsWhatIsNoLine) {
  size_t good = 0;
  const size_t damaged = ForEachKallsymsLine(
      "\nxyz\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n11112222333344445 T a\nff T b\t\nff T "
      "c\t[\nff T d\t[]\nff t e\n",
      [&](const KallsymsLine&) { ++good; });
  EXPECT_EQ(good, 1u);
  EXPECT_EQ(damaged, 9u);
}

}  // namespace
}  // namespace clrsampler
