#include "capture/kernel_name_lookup.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "capture/libbpf_log.h"
#include "capture/load_error.h"
#include "kernel_names.skel.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// struct batch of bpf/kernel_names.bpf.c
constexpr size_t kBatch = 64;
constexpr size_t kNameBytes = 256;
struct Batch {
  uint64_t addresses[kBatch];
  char names[kBatch][kNameBytes];
};

}  // namespace

void KernelNameLookup::SkeletonDeleter::operator()(kernel_names_bpf* skeleton) const {
  kernel_names_bpf__destroy(skeleton);
}

KernelNameLookup::~KernelNameLookup() = default;

absl::StatusOr<std::unique_ptr<KernelNameLookup>> KernelNameLookup::Create() {
  const LibbpfLog quiet;
  std::unique_ptr<KernelNameLookup> lookup(new KernelNameLookup());
  lookup->skeleton_.reset(kernel_names_bpf__open());
  if (lookup->skeleton_ == nullptr) return ErrnoError(errno, "opening the BPF object");
  const int error = kernel_names_bpf__load(lookup->skeleton_.get());
  if (error == -EPERM || error == -EACCES) return LoadError(-error, "asking the kernel for names", "");
  // The only other failure is that the kernel does not know the program type or the helper.
  if (error != 0) return absl::UnimplementedError(absl::StrCat("no syscall programs: ", std::strerror(-error)));
  return lookup;
}

absl::StatusOr<std::vector<std::string>> KernelNameLookup::LookUp(std::span<const uint64_t> addresses) {
  main_loop_.Check();
  const int map = bpf_map__fd(skeleton_->maps.batches);
  const int program = bpf_program__fd(skeleton_->progs.name_batch);
  const auto batch = std::make_unique<Batch>();
  const uint32_t key = 0;
  std::vector<std::string> names;
  names.reserve(addresses.size());
  while (!addresses.empty()) {
    const std::span<const uint64_t> some = addresses.first(std::min(addresses.size(), kBatch));
    addresses = addresses.subspan(some.size());
    *batch = {};
    // An address of 0 would end the batch.
    std::transform(some.begin(), some.end(), batch->addresses,
                   [](uint64_t address) { return std::max<uint64_t>(address, 1); });
    LIBBPF_OPTS(bpf_test_run_opts, options);
    if (bpf_map_update_elem(map, &key, batch.get(), BPF_ANY) != 0 || bpf_prog_test_run_opts(program, &options) != 0 ||
        bpf_map_lookup_elem(map, &key, batch.get()) != 0) {
      return ErrnoError(errno, "asking the kernel for names");
    }
    for (size_t i = 0; i < some.size(); ++i) {
      const std::string name(batch->names[i], strnlen(batch->names[i], kNameBytes));
      names.push_back(absl::StartsWith(name, "0x") ? "" : name);
    }
  }
  return names;
}

}  // namespace clrsampler
