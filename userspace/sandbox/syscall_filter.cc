#include "sandbox/syscall_filter.h"

#include <seccomp.h>

#include <array>
#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr unsigned kMaxConditions = 3;

int AddRule(scmp_filter_ctx context, const SyscallRule& rule) {
  const int number = seccomp_syscall_resolve_name(rule.name);
  if (number < 0) return 0;  // not on this architecture
  std::array<scmp_arg_cmp, kMaxConditions> conditions{};
  unsigned count = 0;
  for (const ArgumentCondition& condition : rule.conditions) {
    if (count == kMaxConditions) return -EINVAL;
    conditions[count++] = {condition.index, SCMP_CMP_MASKED_EQ, condition.mask, condition.value};
  }
  const int added = seccomp_rule_add_array(context, SCMP_ACT_ALLOW, number, count, conditions.data());
  return added == -EEXIST ? 0 : added;
}

}  // namespace

absl::Status FilterSyscalls(std::span<const SyscallRule> rules) {
  const std::unique_ptr<void, void (*)(void*)> context(seccomp_init(SCMP_ACT_ERRNO(EPERM)),
                                                       [](void* made) { seccomp_release(made); });
  if (context == nullptr) return absl::InternalError("libseccomp can make no filter");
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_NNP, 0);  // the caller's business
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  // Before Linux 5.16 a filter slows all code down as a protection against speculation. Foreign code never runs here.
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_SSB, 1);
  for (const SyscallRule& rule : rules) {
    if (const int error = AddRule(context.get(), rule); error != 0) {
      return ErrnoError(-error, absl::StrCat("the rule for ", rule.name));
    }
  }
  // glibc falls back to the calls of older kernels.
  if (const int clone3 = seccomp_syscall_resolve_name("clone3"); clone3 >= 0) {
    seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
  }
  if (const int error = seccomp_load(context.get()); error != 0) {
    return absl::UnimplementedError(
        absl::StrCat("this kernel takes no seccomp filter: ", ErrnoError(-error, "seccomp").message()));
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
