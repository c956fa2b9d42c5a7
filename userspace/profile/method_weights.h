// How much of a profile each method has: alone, and with all that it called. Pure.
#ifndef CLRSAMPLER_PROFILE_METHOD_WEIGHTS_H_
#define CLRSAMPLER_PROFILE_METHOD_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "formats/profile/profile_model.h"

namespace clrsampler {

struct MethodWeight {
  std::string name;
  std::string module;  // may be empty
  ModelFrameKind kind = ModelFrameKind::kUnknown;
  uint64_t self = 0;   // of samples whose leaf it is; frames without code (roles, marks) are no leaves
  uint64_t total = 0;  // of samples in whose stack it is; a recursion counts once
};

// Adds profiles up. Methods are told apart by name, module and kind.
class MethodWeights {
 public:
  // Of the samples for whose row `wanted` has a 1; empty: of all.
  void Add(const ProfileModel& model, std::span<const uint8_t> wanted = {});
  // Most self weight first, then most total weight, then by name. Marks are left out.
  std::vector<MethodWeight> Sorted() const;
  uint64_t total() const { return total_; }

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
  absl::flat_hash_map<Key, Weights> methods_;
  uint64_t total_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_METHOD_WEIGHTS_H_
