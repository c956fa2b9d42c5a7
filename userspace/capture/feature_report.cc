#include "capture/feature_report.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "capture/libbpf_log.h"
#include "capture/load_error.h"
#include "capture/uprobe.h"
#include "os/file_io.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kBtfPath[] = "/sys/kernel/btf/vmlinux";

// "r0 = 0; exit": accepted whenever programs of this kind are.
int LoadSmallestProgram(bpf_prog_type type) {
  const std::array<bpf_insn, 2> instructions = {
      bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  if (type == BPF_PROG_TYPE_SYSCALL) options.prog_flags = BPF_F_SLEEPABLE;
  const UniqueFd fd(bpf_prog_load(type, nullptr, "GPL", instructions.data(), instructions.size(), &options));
  return fd.valid() ? 0 : errno;
}

Feature HelperFeature(absl::string_view name, bpf_func_id helper, bool required, absl::string_view detail) {
  const int answer = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, helper, nullptr);
  return {std::string(name), answer == 1, required, std::string(detail)};
}

std::string LockdownMode() {
  const absl::StatusOr<std::string> text = ReadWholeFile("/sys/kernel/security/lockdown", 256);
  if (!text.ok()) return "";
  const size_t begin = text->find('[');
  const size_t end = text->find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return text->substr(begin + 1, end - begin - 1);
}

void ProbeEverythingElse(FeatureReport& report) {
  report.features.push_back(
      {"attach cookie", HasAttachCookie(), false, "Linux 5.15: one probe program for many places"});
  report.features.push_back(
      HelperFeature("bpf_get_current_task_btf", BPF_FUNC_get_current_task_btf, false, "Linux 5.11"));
  report.features.push_back(HelperFeature("bpf_loop", BPF_FUNC_loop, false, "Linux 5.17; not needed"));
  report.features.push_back(HelperFeature("bpf_find_vma", BPF_FUNC_find_vma, false, "Linux 5.17; not needed"));
  const int error = LoadSmallestProgram(BPF_PROG_TYPE_SYSCALL);
  report.features.push_back(
      {std::string(kFeatureSyscallProgram), error == 0, false,
       error == 0 ? "Linux 5.14: names of kernel addresses without reading all of /proc/kallsyms"
                  : absl::StrCat("Linux 5.14; ", std::strerror(error), "; all of /proc/kallsyms is read instead")});
  report.features.push_back({"uprobe links", UprobeAttachType() != 0, false,
                             "Linux 6.6; perf events without them, which are slow to remove"});
  if (!report.lockdown.empty()) {
    report.features.push_back({"kernel lockdown", report.lockdown != "none", false, report.lockdown});
  }
}

}  // namespace

bool HasAttachCookie() {
  return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_attach_cookie, nullptr) == 1;
}

bool FeatureReport::Has(absl::string_view name) const {
  const auto found =
      std::find_if(features.begin(), features.end(), [&](const Feature& one) { return one.name == name; });
  return found != features.end() && found->present;
}

absl::Status FeatureReport::Usable() const {
  if (load_error != 0) return LoadError(load_error, "BPF programs can't be loaded", lockdown);
  for (const Feature& feature : features) {
    if (!feature.required || feature.present) continue;
    if (feature.name == kFeatureBtf) {
      return WithHint(
          absl::FailedPreconditionError(absl::StrCat("the kernel has no type information (", kBtfPath, ")")),
          "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as all large distributions ship since 2021; in a "
          "container, mount /sys");
    }
    if (feature.name == kFeatureProbeReadKernel && lockdown == "confidentiality") {
      return LoadError(EPERM, "BPF programs can't read kernel memory", lockdown);
    }
    return WithHint(absl::UnimplementedError(absl::StrCat("the kernel is too old: no ", feature.name)),
                    "Linux 5.10 or newer is needed");
  }
  return absl::OkStatus();
}

FeatureReport ProbeFeatures(ProbeDepth depth) {
  const LibbpfLog quiet;
  FeatureReport report;
  report.lockdown = LockdownMode();
  const bool btf = access(kBtfPath, R_OK) == 0;
  report.features.push_back(
      {std::string(kFeatureBtf), btf, true, btf ? kBtfPath : absl::StrCat(kBtfPath, ": ", std::strerror(errno))});
  report.load_error = LoadSmallestProgram(BPF_PROG_TYPE_PERF_EVENT);
  const bool loads = report.load_error == 0;
  report.features.push_back(
      {std::string(kFeaturePerfEventProgram), loads, true, loads ? "loads" : std::strerror(report.load_error)});
  if (!loads) return report;  // the rest could only repeat it

  // A map type is tried by making one, a helper by loading a program that calls it.
  report.features.push_back({std::string(kFeatureRingBuffer),
                             libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, nullptr) == 1, true, "Linux 5.8"});
  report.features.push_back(HelperFeature(kFeatureProbeReadKernel, BPF_FUNC_probe_read_kernel, true,
                                          "Linux 5.5; refused under lockdown=confidentiality"));
  report.features.push_back(
      HelperFeature(kFeatureTaskPtRegs, BPF_FUNC_task_pt_regs, false,
                    "Linux 5.15; without it user registers are read from the top of the kernel stack"));
  if (depth == ProbeDepth::kEverything) ProbeEverythingElse(report);
  return report;
}

}  // namespace clrsampler
