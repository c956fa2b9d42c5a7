#include "capture/uprobe.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "capture/cpu_list.h"
#include "capture/probed_function.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The kernel numbers its kinds of events at boot (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).
constexpr char kType[] = "/sys/bus/event_source/devices/uprobe/type";
constexpr char kReturnBit[] = "/sys/bus/event_source/devices/uprobe/format/retprobe";

absl::StatusOr<uint32_t> ReadNumber(const char* path, absl::string_view prefix) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, 64);
  uint32_t number = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripPrefix(absl::StripAsciiWhitespace(*text), prefix), &number)) {
    return WithHint(absl::UnimplementedError("this kernel has no uprobes for perf events"),
                    "a kernel built with CONFIG_UPROBE_EVENTS; inside a container /sys must be mounted");
  }
  return number;
}

// BPF_TRACE_UPROBE_MULTI and BPF_F_UPROBE_MULTI_RETURN, include/uapi/linux/bpf.h of 6.6; newer than the headers here.
constexpr uint32_t kUprobeMulti = 48;
constexpr uint32_t kUprobeMultiReturn = 1;

// The parameters of BPF_LINK_CREATE for it, as in union bpf_attr.
struct UprobeLink {
  uint32_t program_fd, target_fd, attach_type, flags;
  uint64_t path, offsets, reference_offsets, cookies;
  uint32_t count, uprobe_flags, pid, padding;
};
static_assert(sizeof(UprobeLink) == 64);

bool MayOpenPerfUprobes() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, data) != 0 || (data[0].effective & (1U << CAP_SYS_ADMIN)) != 0;
}

// -1 and errno, as the system call says it.
UniqueFd CreateLink(const UprobePlace& place) {
  UprobeLink link{};
  link.program_fd = static_cast<uint32_t>(place.program_fd);
  link.attach_type = kUprobeMulti;
  link.path = reinterpret_cast<uint64_t>(place.path.c_str());
  link.offsets = reinterpret_cast<uint64_t>(&place.file_offset);
  link.cookies = place.cookie == 0 ? 0 : reinterpret_cast<uint64_t>(&place.cookie);
  link.count = 1;
  link.pid = static_cast<uint32_t>(place.process);
  if (place.at == UprobeAt::kReturn) link.uprobe_flags = kUprobeMultiReturn;
  return UniqueFd(static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof link)));
}

absl::StatusOr<UniqueFd> OpenUprobeLink(const UprobePlace& place) {
  UniqueFd opened = CreateLink(place);
  if (opened.valid()) return opened;
  const bool unknown = errno == EINVAL;
  const absl::Status error = ErrnoError(errno, absl::StrCat("planting a probe in ", place.path));
  return unknown ? WithHint(error, "before Linux 6.6 this takes CAP_SYS_ADMIN, or root") : error;
}

// A kernel that knows them refuses a directory with EBADF (bpf_uprobe_multi_link_attach, kernel/trace/bpf_trace.c). Any
// other kernel has never heard of this kind of link.
bool TryLinks() {
  const std::array<bpf_insn, 2> nothing = {bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K},
                                           bpf_insn{.code = BPF_JMP | BPF_EXIT}};
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = static_cast<bpf_attach_type>(kUprobeMulti));
  const UniqueFd program(bpf_prog_load(BPF_PROG_TYPE_KPROBE, nullptr, "GPL", nothing.data(), nothing.size(), &options));
  if (!program.valid()) return false;
  const UniqueFd link = CreateLink({.path = "/", .program_fd = program.get()});
  return !link.valid() && errno == EBADF;
}

bool UsesLinks() {
  // A process that may not use perf's probes has no other way. The link's own error is reported then.
  static const bool uses = TryLinks() || !MayOpenPerfUprobes();
  return uses;
}

// A program that counts its runs in the only element of `map`: r0 = lookup(map, key 0); if it is there, ++*r0.
UniqueFd LoadCounter(int map) {
  const auto insn = [](int code, uint8_t dst, uint8_t src, int16_t off, int32_t imm) {
    return bpf_insn{.code = static_cast<uint8_t>(code), .dst_reg = dst, .src_reg = src, .off = off, .imm = imm};
  };
  const std::array<bpf_insn, 11> program = {
      insn(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, -8, 0),
      insn(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
      insn(BPF_ALU64 | BPF_ADD, BPF_REG_2, 0, 0, -8),
      insn(BPF_LD | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),  // of 16 bytes, with the next
      insn(0, 0, 0, 0, 0),
      insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
      insn(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, 0),
      insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 1),
      insn(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD),
      insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
      insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
  };
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = static_cast<bpf_attach_type>(kUprobeMulti));
  return UniqueFd(bpf_prog_load(BPF_PROG_TYPE_KPROBE, nullptr, "GPL", program.data(), program.size(), &options));
}

// A call by another thread than the first of the process to which the probe is bound has to be seen.
bool TryBinding() {
  const std::optional<uint64_t> offset = ProbedFunctionOffset();
  const UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, nullptr, sizeof(uint32_t), sizeof(uint64_t), 1, nullptr));
  if (!offset.has_value() || !map.valid()) return false;
  const UniqueFd program = LoadCounter(map.get());
  if (!program.valid()) return false;
  std::vector<UniqueFd> probe;
  probe.push_back(
      CreateLink({.path = "/proc/self/exe", .file_offset = *offset, .program_fd = program.get(), .process = getpid()}));
  if (!probe.front().valid()) return false;
  std::thread(clrsampler_probed_function).join();
  // The kernel takes 0.06 s to remove it. Nobody has to wait for that.
  std::thread(CloseUprobes, std::move(probe)).detach();
  const uint32_t key = 0;
  uint64_t hits = 0;
  return bpf_map_lookup_elem(map.get(), &key, &hits) == 0 && hits == 1;
}

// A link of its own carries the cookie. It keeps the event, so the owner has to hold its descriptor alone.
absl::StatusOr<UniqueFd> StartWithCookie(UniqueFd event, const UprobePlace& place) {
  LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event = {.bpf_cookie = place.cookie});
  UniqueFd link(bpf_link_create(place.program_fd, event.get(), BPF_PERF_EVENT, &options));
  if (!link.valid() || ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return ErrnoError(errno, absl::StrCat("starting a probe in ", place.path));
  }
  return link;
}

absl::StatusOr<UniqueFd> OpenPerfUprobe(const UprobePlace& place) {
  ASSIGN_OR_RETURN(const uint32_t type, ReadNumber(kType, ""));
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  if (place.at == UprobeAt::kReturn) {
    ASSIGN_OR_RETURN(const uint32_t bit, ReadNumber(kReturnBit, "config:"));
    if (bit >= 64) return absl::UnimplementedError("the kernel's return probes are of an unknown kind");
    attributes.config = uint64_t{1} << bit;
  }
  attributes.uprobe_path = reinterpret_cast<uint64_t>(place.path.c_str());
  attributes.probe_offset = place.file_offset;
  // This covers all processes. The CPU is that of the event, whose records nobody reads. The program runs on any CPU.
  const absl::StatusOr<std::vector<int>> online = OnlineCpus();
  const int cpu = online.ok() && !online->empty() ? online->front() : 0;
  UniqueFd event(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, /*pid=*/-1, cpu, /*group=*/-1, PERF_FLAG_FD_CLOEXEC)));
  if (!event.valid()) return ErrnoError(errno, absl::StrCat("planting a probe in ", place.path));
  if (place.cookie != 0) return StartWithCookie(std::move(event), place);
  if (ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, place.program_fd) != 0 ||
      ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return ErrnoError(errno, absl::StrCat("starting a probe in ", place.path));
  }
  return event;
}

}  // namespace

uint32_t UprobeAttachType() { return UsesLinks() ? kUprobeMulti : 0; }

bool UprobesBindToProcess() {
  static const bool bind = UsesLinks() && TryBinding();
  return bind;
}

absl::StatusOr<UniqueFd> OpenUprobe(const UprobePlace& place) {
  if (!UsesLinks()) return OpenPerfUprobe(place);
  UprobePlace bound = place;
  if (!UprobesBindToProcess()) bound.process = 0;
  return OpenUprobeLink(bound);
}

void CloseUprobes(std::vector<UniqueFd> probes) {
  constexpr size_t kMostThreads = 32;
  while (!probes.empty()) {
    const size_t count = std::min(probes.size(), kMostThreads);
    std::vector<std::thread> closing;
    for (size_t i = probes.size() - count; i < probes.size(); ++i) {
      closing.emplace_back([probe = &probes[i]] { probe->reset(); });
    }
    for (std::thread& thread : closing) thread.join();
    probes.resize(probes.size() - count);
  }
}

}  // namespace clrsampler
