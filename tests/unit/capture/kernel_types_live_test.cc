// The types that KernelTypes gives libbpf, against all of the kernel's: our programs must come out the same.
#include "capture/kernel_types.h"

#include <bpf/libbpf.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capture/libbpf_log.h"
#include "clrsampler.skel.h"
#include "live.h"

namespace clrsampler {
namespace {

using Skeleton = std::unique_ptr<clrsampler_bpf, decltype(&clrsampler_bpf__destroy)>;
using Programs = std::map<std::string, std::vector<std::pair<uint32_t, int32_t>>>;  // opcode and registers, immediate

// Loads the samplers; empty where the kernel refuses.
Programs Relocated(const Skeleton& skeleton) {
  bpf_map__set_max_entries(skeleton->maps.samples, 1 << 16);
  bpf_map__set_max_entries(skeleton->maps.scratch_by_cpu, 1);
  bpf_program__set_autoload(skeleton->progs.cpu_sample_general, true);
  Programs programs;
  if (clrsampler_bpf__load(skeleton.get()) != 0) return programs;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton->obj) {
    if (!bpf_program__autoload(program)) continue;
    auto& instructions = programs[bpf_program__name(program)];
    for (size_t i = 0; i < bpf_program__insn_cnt(program); ++i) {
      const bpf_insn& instruction = bpf_program__insns(program)[i];
      constexpr uint8_t kLoadImmediate64 = BPF_LD | BPF_IMM | BPF_DW;
      const bool is_descriptor = instruction.code == kLoadImmediate64 && instruction.src_reg != 0;
      instructions.emplace_back(instruction.code | instruction.dst_reg << 8 | instruction.src_reg << 12 |
                                    static_cast<uint16_t>(instruction.off) << 16,
                                is_descriptor ? 0 : instruction.imm);
    }
  }
  return programs;
}

class KernelTypesLiveTest : public test_support::LiveTest {};

TEST_F(KernelTypesLiveTest, ProgramsAreRelocatedAsWithAllTypes) {
  LibbpfLog log;
  const Skeleton with_all(clrsampler_bpf__open(), clrsampler_bpf__destroy);
  ASSERT_NE(with_all, nullptr);
  const Programs expected = Relocated(with_all);
  ASSERT_FALSE(expected.empty()) << log.text();

  absl::StatusOr<KernelTypes> types = KernelTypes::Create();
  ASSERT_TRUE(types.ok()) << types.status();
  LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = types->path().c_str());
  const Skeleton with_few(clrsampler_bpf__open_opts(&options), clrsampler_bpf__destroy);
  ASSERT_NE(with_few, nullptr);
  const absl::Status filled = types->Fill(bpf_object__btf(with_few->obj));
  ASSERT_TRUE(filled.ok()) << filled;
  EXPECT_EQ(Relocated(with_few), expected) << log.text();

  struct stat few {
  }, all{};
  ASSERT_EQ(stat(types->path().c_str(), &few), 0);
  ASSERT_EQ(stat("/sys/kernel/btf/vmlinux", &all), 0);
  EXPECT_LT(few.st_size, all.st_size / 20);
}

}  // namespace
}  // namespace clrsampler
