// How much of a profile each method has: alone, and with all that it called. Pure.
#ifndef CLRSAMPLER_PROFILE_METHOD_WEIGHTS_H_
#define CLRSAMPLER_PROFILE_METHOD_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

struct MethodWeight {
  std::string name;
  std::string module;  // may be empty
  ModelFrameKind kind = ModelFrameKind::kUnknown;
  // The weight of samples whose leaf it is. Marks, types and roles are no leaves: where one is innermost, the weight
  // belongs to the caller. A stack of such frames alone has no leaf, so these weights may add up to less than the
  // profile. A role has what NamelessLeaves gives it.
  uint64_t self = 0;
  uint64_t total = 0;  // of samples in whose stack it is; a recursion counts once
};

// The place for the self weight of native functions that are known by an address only, "libcoreclr.so!0x3d0b60", and
// that the runtime called for something. They stand below a role or a function of the runtime with a name, without
// managed code between.
enum class NamelessLeaves : uint8_t {
  // To the role: a reader can use "[gc gen1 blocking]". All compilations are one, "[jit]". Without a role, to what the
  // nearest named caller does: "[in ThreadNative_SpinWait]", which is a row of its own.
  kByRole,
  kByAddress,  // to the function
};

// "MODULE!0x3d0b60", and the texts of native code where not even that is known, "[native: no symbols MODULE]".
bool IsNamelessNative(const ModelFrame& frame, absl::string_view name);

// Adds profiles up. Methods are told apart by name, module and kind; precompiled code has the kind of compiled code.
class MethodWeights {
 public:
  explicit MethodWeights(NamelessLeaves nameless = NamelessLeaves::kByRole) : nameless_(nameless) {}

  // Adds the samples for whose row `wanted` has a 1; empty: all.
  void Add(const ProfileModel& model, std::span<const uint8_t> wanted = {});
  // Most self weight first, then most total weight, then by name. Marks are left out.
  std::vector<MethodWeight> Sorted() const;
  uint64_t total() const { return total_; }
  // The weight of samples whose leaf is a nameless function of a .NET runtime: in one of its libraries, or below a
  // role.
  uint64_t nameless_runtime() const { return nameless_runtime_; }

 private:
  struct Key {
    std::string name, module;
    ModelFrameKind kind;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.name, key.module, key.kind);
    }
  };
  struct Weights {
    uint64_t self = 0, total = 0;
  };
  struct Methods;
  class LeafSearch;

  void AddSums(const Methods& methods, const std::vector<Weights>& sums,
               const absl::flat_hash_map<uint32_t, uint64_t>& inside);

  const NamelessLeaves nameless_;
  absl::flat_hash_map<Key, Weights> methods_;
  uint64_t total_ = 0, nameless_runtime_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_METHOD_WEIGHTS_H_
