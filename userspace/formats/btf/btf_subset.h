// BTF, the kernel's description of its types -> the few of them that a BPF object asks about.
//
// libbpf looks for each type of an object among all of the kernel's, some 130,000 in 5 MB that it copies twice; that
// was a fifth of what a short recording cost. Layout: Documentation/bpf/btf.rst. Pure; work is linear in the input.
#ifndef CLRSAMPLER_FORMATS_BTF_BTF_SUBSET_H_
#define CLRSAMPLER_FORMATS_BTF_BTF_SUBSET_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"

namespace clrsampler {

// Names of types that relocations of an object with this BTF may start from: structs, unions, enums, typedefs, without
// their flavors ("task_struct___old" is the kernel's task_struct).
absl::StatusOr<absl::flat_hash_set<std::string>> BtfTypeNames(std::span<const std::byte> btf);

// All types of `btf` with these names, whatever their kind, and what lies in them by value: members, elements, the
// types behind typedefs. A pointer leads to void, since a relocation ends where one is followed. An error: damaged, of
// the other byte order, or with kinds of types that are not known here.
absl::StatusOr<std::vector<std::byte>> BtfSubset(std::span<const std::byte> btf,
                                                 const absl::flat_hash_set<std::string>& names);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_BTF_BTF_SUBSET_H_
